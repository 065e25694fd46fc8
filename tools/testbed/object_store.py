"""A small object store that speaks as much of S3 as a client needs to keep files: in memory, for tests.

Buckets and keys, whole and in parts, listed by prefix. Signatures are not checked; whether a request has one is.
"""

import asyncio
import threading
from collections.abc import Mapping
from email.utils import formatdate
from hashlib import md5
from xml.sax.saxutils import escape

from aiohttp import web

MOST = 64 << 20


class ObjectStore:
    """A server on loopback; a context manager. `objects` are its contents by "bucket/key"."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.unsigned = 0
        """Requests that came without credentials."""
        self._parts: dict[str, dict[int, bytes]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="object store", daemon=True)

    def __enter__(self) -> "ObjectStore":
        self._thread.start()
        self.port: int = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def url(self, path: str) -> str:
        """The address of a bucket and prefix, as pyarrow takes it."""
        return f"s3://{path}?endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"

    @property
    def variables(self) -> Mapping[str, str]:
        """The credentials that a client needs."""
        return {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}

    async def _start(self) -> int:
        app = web.Application(client_max_size=MOST)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def _answer(self, request: web.Request) -> web.Response:
        self.unsigned += "Authorization" not in request.headers
        path, query = request.match_info["path"], request.query
        bucket, _, key = path.partition("/")
        if not key:
            return self._list(bucket, query) if request.method == "GET" else web.Response()
        if request.method == "PUT":
            body = _unchunked(await request.read(), request)
            if "partNumber" in query:
                self._parts[query["uploadId"]][int(query["partNumber"])] = body
            else:
                self.objects[path] = body
            return web.Response(headers={"ETag": f'"{md5(body, usedforsecurity=False).hexdigest()}"'})
        if request.method == "POST":
            return self._upload(path, query)
        if request.method == "DELETE":
            self.objects.pop(path, None)
            return web.Response(status=204)
        return self._content(path, request)

    def _upload(self, path: str, query: Mapping[str, str]) -> web.Response:
        bucket, _, key = path.partition("/")
        named = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
        if "uploads" in query:
            upload = f"upload-{len(self._parts)}"
            self._parts[upload] = {}
            inside = f"{named}<UploadId>{upload}</UploadId>"
            return _xml(f"<InitiateMultipartUploadResult>{inside}</InitiateMultipartUploadResult>")
        parts = self._parts.pop(query["uploadId"])
        self.objects[path] = b"".join(parts[number] for number in sorted(parts))
        return _xml(f'<CompleteMultipartUploadResult>{named}<ETag>"x"</ETag></CompleteMultipartUploadResult>')

    def _content(self, path: str, request: web.Request) -> web.Response:
        found = self.objects.get(path)
        if found is None:
            return _xml("<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>", 404)
        headers = {"ETag": '"x"', "Last-Modified": formatdate(0, usegmt=True), "Accept-Ranges": "bytes"}
        if request.method == "HEAD":
            return web.Response(headers={**headers, "Content-Length": str(len(found))})
        span = request.http_range
        if span.start is not None or span.stop is not None:
            part = found[span]
            begin = span.start or 0
            headers["Content-Range"] = f"bytes {begin}-{begin + len(part) - 1}/{len(found)}"
            return web.Response(status=206, body=part, headers=headers)
        return web.Response(body=found, headers=headers)

    def _list(self, bucket: str, query: Mapping[str, str]) -> web.Response:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        files, folders = [], set()
        for path in sorted(self.objects):
            name = path.removeprefix(f"{bucket}/")
            if name == path or not name.startswith(prefix):
                continue
            rest = name[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
            else:
                files.append(name)
        files = files[: int(query.get("max-keys", 100_000))]
        contents = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(self.objects[f'{bucket}/{name}'])}</Size>"
            '<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"x"</ETag></Contents>'
            for name in files
        )
        common = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in sorted(folders)
        )
        head = f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><IsTruncated>false</IsTruncated>"
        count = f"<KeyCount>{len(files) + len(folders)}</KeyCount>"
        return _xml(f"<ListBucketResult>{head}{count}{contents}{common}</ListBucketResult>")


def _unchunked(body: bytes, request: web.Request) -> bytes:
    """What was sent, where the client sends it in chunks with a checksum behind them."""
    if "aws-chunked" not in request.headers.get("Content-Encoding", ""):
        return body
    content = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        if not length:
            break
        content += body[:length]
        body = body[length + 2 :]
    return content


def _xml(text: str, status: int = 200) -> web.Response:
    return web.Response(
        status=status, text=f'<?xml version="1.0" encoding="UTF-8"?>{text}', content_type="application/xml"
    )
