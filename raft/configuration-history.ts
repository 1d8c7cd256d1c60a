import { decodeConfiguration } from './configuration.ts';
import { RaftInvariantError } from './errors.ts';
import type { Configuration, Entry } from './types.ts';

interface Placed {
  readonly index: number;
  readonly configuration: Configuration;
}

/** The configurations that the log and its snapshot hold: the newest is in force, and truncation undoes it (hazard 27). */
export class ConfigurationHistory {
  /** Ascending by index, never empty. */
  #placed: Placed[];

  constructor(index: number, configuration: Configuration) {
    this.#placed = [{ index, configuration }];
  }

  get newest(): Placed {
    const newest = this.#placed.at(-1);
    if (newest === undefined) throw new RaftInvariantError('no configuration');
    return newest;
  }

  at(index: number): Configuration {
    const placed = this.#placed.findLast((each) => each.index <= index);
    if (placed === undefined) throw new RaftInvariantError(`the configuration at ${index} is forgotten`);
    return placed.configuration;
  }

  note(entries: readonly Entry[]): void {
    for (const { kind, index, data } of entries) {
      if (kind === 'config') this.#placed.push({ index, configuration: decodeConfiguration(data) });
    }
  }

  truncateFrom(index: number): void {
    while (this.#placed.length > 1 && this.newest.index >= index) this.#placed.pop();
  }

  /** Forgets what only entries before `index` could ask for. */
  compact(index: number): void {
    const base = this.#placed.findLastIndex((each) => each.index <= index);
    this.#placed.splice(0, base);
  }

  reset(index: number, configuration: Configuration): void {
    this.#placed = [{ index, configuration }];
  }
}
