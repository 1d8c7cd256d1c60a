import type * as placementModule from '../placement/index.ts';
import type { Assignment, Broker, Resource } from '../placement/index.ts';
import type { Entry } from '../raft/index.ts';
import type * as applyModule from '../src/apply/index.ts';
import type * as commandModule from '../src/command/index.ts';
import type { Command } from '../src/command/index.ts';
import type * as watchModule from '../src/watch/index.ts';
import { built } from './built.ts';

const { DEFAULT_POLICY } = await built<typeof placementModule>('placement/index.js');
const { encodeCommand } = await built<typeof commandModule>('src/command/index.js');
const { Machine } = await built<typeof applyModule>('src/apply/index.js');
const { ChangeRing } = await built<typeof watchModule>('src/watch/index.js');

const ROWS_PER_PART = 1_000;

/** What a member starts from: the state at an index. */
export interface Log {
  readonly snapshot: Uint8Array;
  readonly index: number;
}

/** The state machine and the change ring of one member. */
export class Member {
  readonly ring = new ChangeRing();
  readonly machine = new Machine(this.ring);

  constructor(log: Log | null) {
    if (log !== null) this.machine.restore(log.snapshot, log.index);
  }

  log(): Log {
    return { snapshot: this.machine.snapshot(), index: this.machine.view.appliedIndex };
  }

  entry(command: Command): Entry {
    const timeMs = this.machine.view.timeMs + 1;
    const data = encodeCommand({ version: 1, timeMs, request: null, inTerm: null, command });
    return { index: this.machine.view.appliedIndex + 1, term: 1, kind: 'command', data };
  }

  apply(command: Command): void {
    const entries = [this.entry(command)];
    let results = this.machine.apply(entries);
    while (results.length === 0) results = this.machine.apply(entries);
    const [result] = results;
    if (result?.ok !== true) throw new Error(`${command.type}: ${JSON.stringify(result)}`);
  }

  /** The commands that make these rows the state. */
  importOf(
    brokers: readonly Broker[],
    resources: readonly Resource[],
    assignments: readonly Assignment[],
  ): Command[] {
    const importId = String(this.machine.view.appliedIndex + 1);
    const none = { brokers: [], resources: [], assignments: [] };
    const rows = [
      { ...none, brokers },
      ...inParts(resources).map((part) => ({ ...none, resources: part })),
      ...inParts(assignments).map((part) => ({ ...none, assignments: part })),
    ];
    return [
      ...rows.map((part, n): Command => ({ type: 'importPart', importId, part: n, ...part })),
      {
        type: 'importCommit',
        importId,
        parts: rows.length,
        timeMs: null,
        policy: DEFAULT_POLICY,
        overwrite: true,
      },
    ];
  }
}

function inParts<Row>(rows: readonly Row[]): Row[][] {
  return Array.from({ length: Math.ceil(rows.length / ROWS_PER_PART) }, (_, n) =>
    rows.slice(n * ROWS_PER_PART, (n + 1) * ROWS_PER_PART),
  );
}
