import { type ButtonHTMLAttributes, useId } from "react";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: "main" | "plain" | "danger" | "quiet";
  /** Why it cannot be used now: said on hover and to screen readers. */
  refused?: string | undefined;
}

const looks = {
  main: "bg-accent text-on-accent hover:bg-accent-hover border-transparent",
  plain: "bg-ground text-ink hover:bg-hover border-line-strong",
  danger: "bg-ground text-bad hover:bg-bad-ground border-line-strong",
  quiet: "bg-transparent text-ink hover:bg-hover border-transparent",
};

/** A verb with its object: "Approve change". */
export function Button({ look = "plain", refused, className = "", onClick, children, ...rest }: ButtonProps) {
  const id = useId();
  return (
    <button
      type="button"
      {...rest}
      title={refused ?? rest.title}
      aria-disabled={refused ? true : undefined}
      aria-describedby={refused ? id : rest["aria-describedby"]}
      onClick={refused ? undefined : onClick}
      className={`inline-flex h-8 items-center gap-1.5 rounded-md border px-3 font-medium whitespace-nowrap transition-colors aria-disabled:cursor-not-allowed aria-disabled:opacity-60 disabled:cursor-progress disabled:opacity-60 ${looks[look]} ${className}`}
    >
      {children}
      {refused && (
        <span id={id} className="sr-only">
          {refused}
        </span>
      )}
    </button>
  );
}
