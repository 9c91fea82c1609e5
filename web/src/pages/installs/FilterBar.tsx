// The filter of the fleet: typed, completed, kept in the URL and under names.
import { useEffect, useId, useRef, useState } from "react";
import { complete, type Filtered } from "./filter";
import { Theirs } from "~/ui/Theirs";

interface FilterBarProps {
  value: string;
  rows: readonly Filtered[];
  onChange: (value: string) => void;
}

export function FilterBar({ value, rows, onChange }: FilterBarProps) {
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const list = useId();
  const input = useRef<HTMLInputElement>(null);
  const offers = open ? complete(value, rows) : [];
  const take = (text: string) => {
    onChange(text);
    setAt(-1);
    input.current?.focus();
  };
  useEffect(() => {
    const focus = (e: KeyboardEvent) => {
      if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || typing(e.target)) return;
      e.preventDefault();
      input.current?.focus();
    };
    window.addEventListener("keydown", focus);
    return () => window.removeEventListener("keydown", focus);
  }, []);
  return (
    <div className="relative min-w-0 flex-1 basis-72">
      <input
        ref={input}
        role="combobox"
        aria-label="Filter installs"
        aria-expanded={offers.length > 0}
        aria-controls={list}
        aria-activedescendant={at >= 0 ? `${list}-${at}` : undefined}
        aria-autocomplete="list"
        autoComplete="off"
        spellCheck={false}
        placeholder="Filter: state:unhealthy label:tier=gold release:<r14"
        value={value}
        onChange={(e) => {
          onChange(e.target.value);
          setOpen(true);
          setAt(-1);
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={(e) => {
          if (e.key === "ArrowDown" || e.key === "ArrowUp") {
            e.preventDefault();
            setOpen(true);
            setAt(Math.max(-1, Math.min(at + (e.key === "ArrowDown" ? 1 : -1), offers.length - 1)));
          } else if ((e.key === "Enter" || (e.key === "Tab" && !e.shiftKey)) && offers[at]) {
            e.preventDefault();
            take(offers[at].text);
          } else if (e.key === "Enter") {
            input.current?.blur();
          } else if (e.key === "Escape") {
            if (offers.length > 0) setOpen(false);
            else input.current?.blur();
          }
        }}
        className="h-8 w-full rounded-md border border-line-strong bg-ground px-2 font-mono text-xs placeholder:text-dim"
      />
      <ul
        id={list}
        role="listbox"
        aria-label="Completions"
        hidden={offers.length === 0}
        className="absolute top-9 left-0 z-20 max-h-72 w-full max-w-md overflow-auto rounded-md border border-line bg-ground p-1 shadow-lg"
      >
        {offers.map((offer, i) => (
          <li
            key={offer.text}
            id={`${list}-${i}`}
            role="option"
            aria-selected={i === at}
            onPointerDown={(e) => {
              e.preventDefault(); // the input keeps the focus
              take(offer.text);
            }}
            className="flex h-8 cursor-pointer items-center gap-3 rounded-md px-2 font-mono text-xs hover:bg-hover aria-selected:bg-hover"
          >
            <Theirs className="truncate">{offer.shown}</Theirs>
            {offer.count !== undefined && <span className="ml-auto text-dim tabular-nums">{offer.count}</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && (["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) || target.closest("[role=dialog]") !== null);
