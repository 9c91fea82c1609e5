import { useQuery } from "@tanstack/react-query";
import { reading } from "~/api/client";
import { Theirs } from "~/ui/Theirs";

interface PartsProps {
  install: string;
  chosen: readonly string[];
  onChoose: (names: string[]) => void;
  /** What it means when none is chosen. */
  none: string;
}

/** Chooses components of an install, and its sandbox. */
export function Parts({ install, chosen, onChoose, none }: PartsProps) {
  const { data } = useQuery(reading("/installs/{install}/resources", { path: { install } }));
  const parts = (data?.items ?? []).filter((r) => r.kind === "component" || r.kind === "sandbox");
  return (
    <fieldset className="mt-3">
      <legend>
        Only these <span className="text-dim">({chosen.length > 0 ? `${chosen.length} chosen` : `none chosen: ${none}`})</span>
      </legend>
      <div className="mt-1 flex max-h-40 flex-wrap gap-x-4 gap-y-1 overflow-auto">
        {parts.map((r) => (
          <label key={r.name} className="flex items-center gap-1.5">
            <input
              type="checkbox"
              checked={chosen.includes(r.name)}
              onChange={(e) => onChoose(e.target.checked ? [...chosen, r.name] : chosen.filter((c) => c !== r.name))}
              className="size-4 accent-(--color-accent)"
            />
            <Theirs>{r.name}</Theirs>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
