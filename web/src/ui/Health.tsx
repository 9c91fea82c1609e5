import type { ReactNode } from "react";

type Verdict = "absent" | "unknown" | "healthy" | "unhealthy";

const looks: Record<Verdict, string> = {
  healthy: "h-full bg-good",
  unhealthy: "h-1/2 bg-bad",
  unknown: "h-1/4 bg-line-strong",
  absent: "h-px bg-line",
};

/** How healthy something was, part by part: height and colour say the same. A flat one is a line of a list. */
export function HealthStrip({ strip, label, flat = false }: { strip: readonly Verdict[]; label: ReactNode; flat?: boolean }) {
  return (
    <div className={flat ? "flex min-w-0 items-center gap-3" : ""}>
      <div aria-hidden="true" className={`flex items-end gap-px ${flat ? "h-4 min-w-0 flex-1" : "h-8"}`}>
        {strip.map((verdict, i) => (
          <span key={i} className={`min-w-px flex-1 rounded-[1px] ${looks[verdict]}`} title={verdict} />
        ))}
      </div>
      <p className={`text-xs text-dim tabular-nums ${flat ? "w-28 text-right" : "mt-1"}`}>{label}</p>
    </div>
  );
}
