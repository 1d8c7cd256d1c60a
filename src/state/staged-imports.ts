import type { Assignment, Broker, Resource } from '../../placement/index.ts';
import type { StateHash } from './hash.ts';
import { canonicalValue } from './rows.ts';
import { Table } from './table.ts';

/** Imports under way at once; one more drops the oldest. */
export const MAX_STAGED_IMPORTS = 4;

export interface ImportPart {
  readonly importId: string;
  readonly part: number;
  readonly brokers: readonly Broker[];
  readonly resources: readonly Resource[];
  readonly assignments: readonly Assignment[];
}

/** A part, and the log index of its import's first part. */
export interface StagedPart extends ImportPart {
  readonly firstIndex: number;
}

interface Import {
  /** Log index of its first part. */
  readonly firstIndex: number;
  readonly parts: Set<number>;
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

  /** Rows staged in all. */
  get rowCount(): number {
    let count = 0;
    for (const part of this.parts.values()) {
      count += part.brokers.length + part.resources.length + part.assignments.length;
    }
    return count;
  }

  /** Keeps one part; the same part again replaces it. One import too many drops the oldest, which then cannot commit. */
  stage(part: ImportPart, index: number): void {
    let found = this.#imports.get(part.importId);
    if (found === undefined) {
      if (this.#imports.size >= MAX_STAGED_IMPORTS) {
        const [oldest] = [...this.#imports].sort(([, a], [, b]) => a.firstIndex - b.firstIndex);
        if (oldest !== undefined) this.drop(oldest[0]);
      }
      found = { firstIndex: index, parts: new Set() };
      this.#imports.set(part.importId, found);
    }
    found.parts.add(part.part);
    this.#parts.put(partKey(part.importId, part.part), { ...part, firstIndex: found.firstIndex });
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
  load({ firstIndex, ...part }: StagedPart): void {
    this.stage(part, firstIndex);
  }
}

function partKey(importId: string, part: number): string {
  return `${part}/${importId}`;
}
