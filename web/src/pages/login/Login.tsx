import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRouter, useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { berth, reading } from "~/api/client";
import { Trouble } from "~/ui/Answer";
import { Button } from "~/ui/Button";
import { Command } from "~/ui/Copy";
import { inside } from "./inside";

export function Login() {
  const { to } = useSearch({ from: "/login" });
  const router = useRouter();
  const cache = useQueryClient();
  const { data: methods } = useQuery(reading("/login-methods"));
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const used = useRef(false);

  const enter = async (proof: { link: string } | { token: string }) => {
    setBusy(true);
    setError(undefined);
    try {
      await berth.POST("/browser-sessions", { body: proof });
      cache.clear();
      await router.navigate({ to: inside(to), replace: true });
    } catch (e) {
      setError(e);
      setBusy(false);
    }
  };

  // The secret of a link stands behind the #: no server sees it. It leaves the address at once.
  useEffect(() => {
    const link = location.hash.slice(1);
    if (used.current || !link.startsWith("bwl_")) return;
    used.current = true;
    history.replaceState(history.state, "", location.pathname + location.search);
    void enter({ link });
  });

  const submit = (e: FormEvent<HTMLFormElement>) => {
    e.preventDefault();
    const token = new FormData(e.currentTarget).get("token");
    if (typeof token === "string" && token.trim()) void enter({ token: token.trim() });
  };
  return (
    <main className="mx-auto flex min-h-dvh max-w-sm flex-col justify-center gap-6 p-6">
      <title>Log in · Berth</title>
      <div>
        <svg viewBox="0 0 16 16" width="40" height="40" aria-hidden="true">
          <rect width="16" height="16" rx="4" className="fill-accent" />
          <path d="M4 4h2v8H4zM7 4h5v2H7zM7 10h5v2H7z" fill="#fff" />
        </svg>
        <h1 className="mt-4 text-xl font-semibold">Log in to Berth</h1>
      </div>
      {methods?.oidc && (
        <a
          href={`${methods.oidc.path}?to=${encodeURIComponent("/ui" + inside(to))}`}
          className="flex h-9 items-center justify-center rounded-md bg-accent px-3 font-medium text-on-accent hover:bg-accent-hover"
        >
          {`Log in with ${methods.oidc.name}`}
        </a>
      )}
      <p className="flex flex-col items-start gap-1.5">
        <span>The command line knows you already:</span>
        <Command>berth ui</Command>
      </p>
      <form onSubmit={submit} className="flex flex-col gap-2">
        <label className="flex flex-col gap-1">
          <span>or a token</span>
          <input
            name="token"
            type="password"
            autoComplete="off"
            spellCheck={false}
            placeholder="brt_…"
            className="h-9 rounded-md border border-line-strong bg-ground px-2 font-mono"
          />
        </label>
        <Button look="main" type="submit" disabled={busy} className="justify-center">
          {busy ? "Logging in…" : "Log in"}
        </Button>
      </form>
      {error !== undefined && <Trouble error={error} />}
    </main>
  );
}
