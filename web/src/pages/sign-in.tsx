// Asks for a token where the dashboard has to know who looks.

import { useSignal } from "@preact/signals";
import { signIn } from "../client";
import { needsToken, restart } from "../cluster";

export function SignIn() {
  const error = useSignal("");
  return (
    <main class="sign-in">
      <h1>Podium</h1>
      <p>You see the pods that the cluster would list for you. Sign in with a token of the cluster.</p>
      <form
        onSubmit={async (event) => {
          event.preventDefault();
          const token = String(new FormData(event.currentTarget).get("token") ?? "").trim();
          try {
            await signIn(token);
            needsToken.value = false;
            restart();
          } catch (problem) {
            error.value = (problem as Error).message;
          }
        }}
      >
        <label for="token">Token</label>
        <input id="token" name="token" type="password" autocomplete="off" required />
        {error.value && (
          <p class="wrong" role="alert">
            {error.value}
          </p>
        )}
        <button type="submit" class="button main">
          Sign in
        </button>
      </form>
      <p class="soft">
        For example: <code>kubectl create token my-account</code>
      </p>
    </main>
  );
}
