import { useState } from "react";
import { Button } from "~/ui/Button";
import { remove, save, useViews, type View } from "./views";
import { Theirs } from "~/ui/Theirs";

type Search = Omit<View, "name">;

/** Filters that were given a name. */
export function Views({ search, onOpen }: { search: Search; onOpen: (view: Search) => void }) {
  const views = useViews();
  const [name, setName] = useState("");
  return (
    <>
      <Button popoverTarget="views">Views</Button>
      <div
        id="views"
        popover="auto"
        className="fixed inset-auto top-28 right-4 m-0 w-72 rounded-md border border-line bg-ground p-2 text-ink shadow-lg"
      >
        {views.length === 0 && <p className="px-2 py-1 text-dim">Give a filter a name, and it will be here.</p>}
        <ul>
          {views.map(({ name: called, ...view }) => (
            <li key={called} className="flex items-center rounded-md hover:bg-hover">
              <button
                type="button"
                popoverTarget="views"
                popoverTargetAction="hide"
                className="min-w-0 flex-1 truncate px-2 py-1.5 text-left"
                onClick={() => onOpen(view)}
              >
                <Theirs>{called}</Theirs>
              </button>
              <button
                type="button"
                aria-label={`Forget the view ${called}`}
                title="Forget"
                className="size-7 text-dim hover:text-ink"
                onClick={() => remove(called)}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
        <form
          className="mt-1 flex gap-1 border-t border-line pt-2"
          onSubmit={(e) => {
            e.preventDefault();
            if (!name.trim()) return;
            save({ ...search, name: name.trim() });
            setName("");
          }}
        >
          <input
            aria-label="Name of this view"
            placeholder="Name of this view"
            maxLength={60}
            value={name}
            onChange={(e) => setName(e.target.value)}
            className="h-8 min-w-0 flex-1 rounded-md border border-line-strong bg-ground px-2"
          />
          <Button type="submit">Save view</Button>
        </form>
      </div>
    </>
  );
}
