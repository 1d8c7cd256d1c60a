/** `host:port`, the host of an IPv6 address in brackets; port 0 asks for any. `null`: it is neither. */
export function parseAddress(text: string): { host: string; port: number } | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host !== undefined && port <= 65_535 ? { host, port } : null;
}
