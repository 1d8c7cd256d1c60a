import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '..', '..');
/** Where a container keeps its data. */
export const CONTAINER_DATA = '/var/lib/evenkeel';

export interface ComposeService {
  readonly image: string;
  readonly command: readonly string[];
  readonly restart: string;
  readonly ports: readonly string[];
  readonly volumes: readonly string[];
  readonly healthcheck: { readonly test: readonly string[] };
}

export interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

export function readCompose(): ComposeFile {
  return parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'), { merge: true }) as ComposeFile;
}

/** A container's place on this machine. */
export interface LocalPlace {
  readonly clientPort: number;
  readonly peerPort: number;
  readonly directory: string;
}

/**
 * The command line of each service with the names of containers, their ports and their volume put in place of
 * this machine's; nothing else is touched. Throws where a command names a host or port it does not know.
 */
export function localCommandLines(
  compose: ComposeFile,
  places: Readonly<Record<string, LocalPlace>>,
): Record<string, string[]> {
  const place = (service: string): LocalPlace => {
    const found = places[service];
    if (found === undefined) throw new Error(`no place for ${service}`);
    return found;
  };
  const address = (service: string, port: string): string => {
    const { clientPort, peerPort } = place(service);
    const local = { '7401': clientPort, '7501': peerPort }[port];
    if (local === undefined) throw new Error(`${service}:${port} is no port of a node`);
    return `127.0.0.1:${local}`;
  };
  return Object.fromEntries(
    Object.entries(compose.services).map(([service, { command }]) => [
      service,
      command.map((argument) =>
        argument
          .replaceAll(CONTAINER_DATA, place(service).directory)
          .replaceAll(/([a-z0-9.]+):(\d+)/g, (_all, host: string, port: string) =>
            address(host === '0.0.0.0' ? service : host, port),
          ),
      ),
    ]),
  );
}
