/** Only pages of Berth are gone to after a login. */
export function inside(to: string | undefined): string {
  const path = to?.startsWith("/ui/") ? to.slice("/ui".length) : to;
  return path && /^\/(?![/\\])/.test(path) && !path.startsWith("/login") ? path : "/";
}
