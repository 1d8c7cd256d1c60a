import { DEFAULT_POLICY, type Broker, type Step } from '../../../placement/index.ts';
import { Machine } from '../../../src/apply/index.ts';
import { createSystemClock } from '../../../src/clock.ts';
import { COMMAND_VERSION, encodeCommand, type Command } from '../../../src/command/index.ts';
import {
  WorkerPlanner,
  type OpenPlan,
  type PlannerHost,
  type PlanSummary,
  type WorkerPlannerOptions,
} from '../../../src/control/index.ts';
import { SILENT_LOGGER } from '../../../src/logger.ts';
import { ChangeRing } from '../../../src/watch/index.ts';
import { assignment, broker } from '../../placement/support/rows.ts';
import { applyAll } from '../../support/apply-all.ts';
import { streamOf } from '../../support/placed.ts';

/** A state machine fed by hand. */
export class Fixture {
  readonly ring = new ChangeRing();
  readonly machine = new Machine(this.ring);
  #index = 0;

  get state() {
    return this.machine.view;
  }

  write(command: Command): unknown {
    const data = encodeCommand({ version: COMMAND_VERSION, timeMs: 0, request: null, inTerm: null, command });
    const [result] = applyAll(this.machine, [{ index: ++this.#index, term: 1, kind: 'command', data }]);
    if (result?.ok !== true) throw new Error(JSON.stringify(result));
    return result.value;
  }

  /** Answers what applies one slice of the command. */
  begin(command: Command): () => void {
    const data = encodeCommand({ version: COMMAND_VERSION, timeMs: 0, request: null, inTerm: null, command });
    const entry = { index: ++this.#index, term: 1, kind: 'command' as const, data };
    return () => void this.machine.apply([entry]);
  }

  importAll(brokers: readonly Broker[], shards: number, leaderOf: (i: number) => readonly string[]): void {
    const resources = [streamOf('big', shards, 2)];
    const rows = Array.from({ length: shards }, (_, i) => assignment(`stream:big/${i}`, leaderOf(i)));
    let part = 0;
    this.write({ type: 'importPart', importId: 'i', part: part++, brokers, resources, assignments: [] });
    for (let at = 0; at < rows.length; at += 1_000) {
      const assignments = rows.slice(at, at + 1_000);
      this.write({
        type: 'importPart',
        importId: 'i',
        part: part++,
        brokers: [],
        resources: [],
        assignments,
      });
    }
    this.write({
      type: 'importCommit',
      importId: 'i',
      parts: part,
      timeMs: null,
      policy: DEFAULT_POLICY,
      overwrite: false,
    });
  }
}

export function brokersOf(count: number): Broker[] {
  return Array.from({ length: count }, (_, i) =>
    broker(`b${String(i).padStart(2, '0')}`, { zone: `z${i % 3}` }),
  );
}

/** What every plan of these tests is asked for with. */
export const input = () => ({
  nowMs: 1_000_000,
  reports: {
    shards: new Map(),
    leasedUntilMs: new Map(),
    unheard: new Set<string>(),
    unconfirmed: new Map(),
  },
});

export interface Whole {
  readonly summary: PlanSummary;
  readonly steps: readonly Step[];
}

export async function readAll({ summary, slices }: OpenPlan): Promise<Whole> {
  const steps: Step[] = [];
  for await (const slice of slices) steps.push(...slice);
  return { summary, steps };
}

/** As JSON has it. */
export const plain = (made: object): unknown => JSON.parse(JSON.stringify(made));

/** All of a pass's plan. */
export const wholePlan = async (host: PlannerHost): Promise<Whole> => readAll(await host.plan(input));

export function workerFor(f: Fixture, options: Partial<WorkerPlannerOptions> = {}): WorkerPlanner {
  return new WorkerPlanner(f.state, f.ring, { clock: createSystemClock(), log: SILENT_LOGGER, ...options });
}
