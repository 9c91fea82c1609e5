import { useQuery } from "@tanstack/react-query";
import { berth, reading } from "~/api/client";

const item = "block w-full rounded-md px-2 py-1.5 text-left hover:bg-hover";

/** Who is here, the theme, and the way out. */
export function Account({ onKeys }: { onKeys: () => void }) {
  const { data: me } = useQuery(reading("/me"));
  const name = me?.account.name ?? "";
  return (
    <>
      <button
        type="button"
        popoverTarget="account"
        aria-label={`Account of ${name}`}
        className="flex size-8 items-center justify-center rounded-full border border-line-strong bg-raised font-medium uppercase hover:bg-hover"
      >
        {name.slice(0, 1)}
      </button>
      <div
        id="account"
        popover="auto"
        className="fixed inset-auto top-12 right-4 m-0 w-56 rounded-md border border-line bg-ground p-1 text-ink shadow-lg"
      >
        <p className="border-b border-line px-2 py-1.5">
          <span className="block truncate font-medium">{name}</span>
          <span className="block truncate text-dim">{me?.grants.map((g) => g.role).join(", ")}</span>
        </p>
        <button type="button" className={item} onClick={turnTheme}>
          Light or dark
        </button>
        <button type="button" className={item} popoverTarget="account" popoverTargetAction="hide" onClick={onKeys}>
          Keys
        </button>
        <a className={item} href="/reference">
          API reference
        </a>
        <button type="button" className={item} onClick={() => void logOut()}>
          Log out
        </button>
      </div>
    </>
  );
}

function turnTheme() {
  const dark = document.documentElement.classList.toggle("dark");
  try {
    localStorage.setItem("berth.theme", dark ? "dark" : "light");
  } catch {
    // storage is blocked: the theme lasts as long as the page
  }
}

async function logOut() {
  try {
    await berth.DELETE("/browser-sessions/{session}", { params: { path: { session: "current" } } });
  } finally {
    location.assign("/ui/login");
  }
}
