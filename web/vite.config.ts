import { readdirSync, readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

const SHIPPED = ["preact", "@preact/signals", "@preact/signals-core", "uplot"];

/** Puts the licences of everything that is shipped beside it. */
function licences(): Plugin {
  return {
    name: "licences",
    generateBundle() {
      const texts = SHIPPED.map((name) => {
        const folder = `node_modules/${name}`;
        const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
        const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
        return `${name} ${version} (${license})\n\n${file ? readFileSync(`${folder}/${file}`, "utf8").trim() : ""}\n`;
      });
      this.emitFile({ type: "asset", fileName: "licences.txt", source: texts.join(`\n${"-".repeat(79)}\n\n`) });
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [licences()],
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    outDir: "../src/podium_dashboard/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: true,
  },
  server: { proxy: { "/api": { target: "http://127.0.0.1:7070", rewrite: (path) => `/dashboard${path}` } } },
  test: { environment: "node" },
} as Parameters<typeof defineConfig>[0]);
