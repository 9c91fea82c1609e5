const paths = {
  inbox: "M2 9.500 4 3h8l2 6.500V13H2zM2 9.500h3.500l1 1.500h3l1-1.500H14",
  installs: "M2 2.500h5v5H2zM9 2.500h5v5H9zM2 9.500h5v4H2zM9 9.500h5v4H9z",
  apps: "M8 1.500 14 4.750v6.500L8 14.500l-6-3.250v-6.500zM2.200 4.900 8 8l5.800-3.100M8 8v6.300",
  runners: "M2 3h12v4H2zM2 9h12v4H2zM4.500 5h.01M4.500 11h.01",
  settings: "M2 4.500h7m3 0h2M2 11.500h2m3 0h7M10.500 3v3M5.500 10v3",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.700 10.700 14 14",
};

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      viewBox="0 0 16 16"
      width="16"
      height="16"
      aria-hidden="true"
      className="shrink-0"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.300"
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      <path d={paths[name]} />
    </svg>
  );
}
