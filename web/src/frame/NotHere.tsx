import { Link } from "@tanstack/react-router";

export function NotHere() {
  return (
    <main className="p-6">
      <title>Not found · Berth</title>
      <h1 className="text-xl font-semibold">There is no such page</h1>
      <p className="mt-2 text-dim">
        The address may be mistyped, or what it showed is gone.{" "}
        <Link to="/" className="text-link underline">
          Open the inbox
        </Link>
      </p>
    </main>
  );
}
