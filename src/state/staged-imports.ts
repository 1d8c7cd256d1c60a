import type { Assignment, Broker, Resource } from '../../placement/index.ts';
import type { StateHash } from './hash.ts';
import { canonicalValue } from './rows.ts';
import { Table } from './table.ts';

/** Imports under way at once; one more drops the oldest. */
export const MAX_STAGED_IMPORTS = 4;

/** An import that gets no part for so long, in cluster time, is dropped. */
export const IMPORT_EXPIRY_MS = 60 * 60 * 1_000;

export interface ImportPart {
  readonly importId: string;
  readonly part: number;
  readonly brokers: readonly Broker[];
  readonly resources: readonly Resource[];
  readonly assignments: readonly Assignment[];
}

/** A part, with the log index of its import's first part. */
export interface StagedPart extends ImportPart {
  readonly firstIndex: number;
  /** Cluster time at which it was staged. */
  readonly stagedAtMs: number;
}

/** An import whose closing entry has not come, as readers see it. */
export interface StagedImport {
  readonly importId: string;
  /** Log index of its first part. */
  readonly firstIndex: number;
  readonly parts: number;
  readonly rows: number;
  readonly lastPartAtMs: number;
}

interface Import {
  readonly firstIndex: number;
  readonly parts: Set<number>;
  rows: number;
  lastPartAtMs: number;
}

/** The parts of imports whose closing entry has not come: in the state, and in no reader's view. */
export class StagedImports {
  readonly #parts: Table<string, StagedPart>;
  /** By id. */
  readonly #imports = new Map<string, Import>();

  constructor(hash: StateHash) {
    this.#parts = new Table<string, StagedPart>(hash, 'import', canonicalValue);
  }

  get parts(): ReadonlyMap<string, StagedPart> {
    return this.#parts.rows;
  }

  /** What all parts take in a snapshot. */
  get bytes(): number {
    return this.#parts.bytes;
  }

  /** The oldest first. */
  list(): StagedImport[] {
    return [...this.#imports]
      .map(([importId, { parts, ...rest }]) => ({ importId, ...rest, parts: parts.size }))
      .sort((a, b) => a.firstIndex - b.firstIndex);
  }

  has(importId: string): boolean {
    return this.#imports.has(importId);
  }

  /** Keeps one part; the same part again replaces it. One import too many drops the oldest, which then cannot commit. */
  stage(part: ImportPart, { index, timeMs }: { index: number; timeMs: number }): void {
    let found = this.#imports.get(part.importId);
    if (found === undefined) {
      const [oldest] = this.list();
      if (oldest !== undefined && this.#imports.size >= MAX_STAGED_IMPORTS) this.drop(oldest.importId);
      found = { firstIndex: index, parts: new Set(), rows: 0, lastPartAtMs: timeMs };
      this.#imports.set(part.importId, found);
    }
    const row = { ...part, firstIndex: found.firstIndex, stagedAtMs: timeMs };
    const replaced = this.#parts.put(partKey(part.importId, part.part), row);
    found.parts.add(part.part);
    found.rows += rowsOf(part) - (replaced === undefined ? 0 : rowsOf(replaced));
    found.lastPartAtMs = Math.max(found.lastPartAtMs, timeMs);
  }

  /** Drops the imports that got no part for `IMPORT_EXPIRY_MS`. */
  expire(nowMs: number): void {
    for (const { importId, lastPartAtMs } of this.list()) {
      if (nowMs - lastPartAtMs >= IMPORT_EXPIRY_MS) this.drop(importId);
    }
  }

  /** Parts `0` to `count - 1` of an import; `null` where one is missing or there are others. */
  collect(importId: string, count: number): readonly ImportPart[] | null {
    if ((this.#imports.get(importId)?.parts.size ?? 0) !== count) return null;
    const found: ImportPart[] = [];
    for (let part = 0; part < count; part++) {
      const row = this.parts.get(partKey(importId, part));
      if (row === undefined) return null;
      found.push(row);
    }
    return found;
  }

  drop(importId: string): void {
    for (const part of this.#imports.get(importId)?.parts ?? []) this.#parts.delete(partKey(importId, part));
    this.#imports.delete(importId);
  }

  /** Puts back what a snapshot held, the oldest import first. */
  load({ firstIndex, stagedAtMs, ...part }: StagedPart): void {
    this.stage(part, { index: firstIndex, timeMs: stagedAtMs });
  }
}

function rowsOf({ brokers, resources, assignments }: ImportPart): number {
  return brokers.length + resources.length + assignments.length;
}

function partKey(importId: string, part: number): string {
  return `${part}/${importId}`;
}
