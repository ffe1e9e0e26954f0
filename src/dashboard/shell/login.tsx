// Asks who is there, in front of the page: what was typed behind it stays.
import { useState } from "preact/hooks";
import { Button, messageOf } from "../parts/button.tsx";
import { logIn } from "../state/book.ts";

export function Login() {
  const [token, setToken] = useState("");
  const [failure, setFailure] = useState<string | undefined>(undefined);

  async function enter(event: Event): Promise<void> {
    event.preventDefault();
    setFailure(undefined);
    try {
      await logIn(token.trim());
    } catch (error) {
      setFailure(messageOf(error));
    }
  }

  return (
    <div class="login" role="dialog" aria-modal="true" aria-labelledby="login-title">
      <form class="login-box stack" onSubmit={(event) => void enter(event)}>
        <h1 id="login-title">Log in</h1>
        <p class="soft">
          Give a token, or use the link that <code>daybook serve</code> printed. A link works once.
        </p>
        <label class="field">
          <span>Token</span>
          <input
            type="password"
            autocomplete="current-password"
            placeholder="dbk_…"
            required
            value={token}
            ref={(element) => element?.focus()}
            onInput={({ currentTarget }) => setToken(currentTarget.value)}
          />
        </label>
        {failure === undefined ? null : (
          <p class="failure" role="alert">
            {failure}
          </p>
        )}
        <Button type="submit" kind="main">
          Log in
        </Button>
        <p class="small faint">
          A token is made with <code>daybook tokens create NAME --role operate</code>
        </p>
      </form>
    </div>
  );
}
