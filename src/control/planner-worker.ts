import { parentPort } from 'node:worker_threads';
import {
  plan,
  resourceKey,
  type Assignment,
  type Broker,
  type Plan,
  type Resource,
  type Snapshot,
} from '../../placement/index.ts';
import { answerQuestion, type PassPlan } from './planner-host.ts';
import { SettledPlan } from './settled-plan.ts';
import { STEPS_PER_MESSAGE, type FromPlanner, type StatePart, type ToPlanner } from './planner-messages.ts';

/** The planner's thread: its own copy of the state, and the last plan until all of it is fetched. */
class PlannerThread {
  readonly #brokers = new Map<string, Broker>();
  readonly #resources = new Map<string, Resource>();
  readonly #assignments = new Map<string, Assignment>();
  /** One string a broker: every row that is read brings its own. */
  readonly #ids = new Map<string, string>();
  readonly #settled = new SettledPlan();
  #planned: { readonly id: number; readonly plan: PassPlan } | null = null;

  take(message: ToPlanner): FromPlanner | null {
    switch (message.type) {
      case 'reset':
        this.#settled.forget();
        this.#brokers.clear();
        this.#resources.clear();
        this.#assignments.clear();
        this.#planned = null;
        return null;
      case 'part':
        this.#write(message.part);
        return null;
      case 'work':
        return this.#work(message);
      case 'fetch':
        return this.#fetch(message);
    }
  }

  #write({ brokers, resources, assignments, gone }: StatePart): void {
    const rows = assignments.map((row) => this.#compact(row));
    const isNew = (row: Assignment): boolean => !this.#assignments.has(row.shard);
    const lists = [brokers, resources, gone.brokers, gone.resources, gone.assignments];
    if (lists.some((list) => list.length > 0) || rows.some(isNew)) this.#settled.forget();
    else this.#settled.rowsChanged(rows);
    for (const row of brokers) this.#brokers.set(row.id, row);
    for (const row of resources) this.#resources.set(resourceKey(row), row);
    for (const row of rows) this.#assignments.set(row.shard, row);
    for (const id of gone.brokers) this.#brokers.delete(id);
    for (const key of gone.resources) this.#resources.delete(key);
    for (const shard of gone.assignments) this.#assignments.delete(shard);
  }

  /** The same row with shared ids, and one list of copies where all are in sync. */
  #compact(row: Assignment): Assignment {
    const share = (id: string): string => {
      const known = this.#ids.get(id);
      if (known === undefined) this.#ids.set(id, id);
      return known ?? id;
    };
    const replicas = row.replicas.map(share);
    const same = row.inSync.length === replicas.length && row.inSync.every((id, i) => id === row.replicas[i]);
    return { ...row, leader: share(row.leader), replicas, inSync: same ? replicas : row.inSync.map(share) };
  }

  #work({ id, input, policy, firstRegisteredAtMs, work }: Extract<ToPlanner, { type: 'work' }>): FromPlanner {
    const { nowMs, reports } = input;
    const facts = { nowMs, policy, firstRegisteredAtMs };
    try {
      if (typeof work === 'object') {
        return { type: 'answered', id, answer: answerQuestion({ ...facts, ...this.#rows() }, reports, work) };
      }
      if (work === 'plan') {
        const made = this.#settled.plan(facts, reports, () => this.#rows());
        this.#planned = { id, plan: made };
        return summary(id, made, null);
      }
      const made = plan({ ...facts, ...this.#rows() }, reports);
      this.#planned = { id, plan: made };
      return summary(id, made, made.levels);
    } catch (error) {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
      return { type: 'failed', id, message };
    }
  }

  #rows(): Pick<Snapshot, 'brokers' | 'resources' | 'assignments'> {
    return {
      brokers: [...this.#brokers.values()],
      resources: [...this.#resources.values()],
      assignments: [...this.#assignments.values()],
    };
  }

  #fetch({ id, list, from }: Extract<ToPlanner, { type: 'fetch' }>): FromPlanner {
    if (this.#planned?.id !== id) return { type: 'failed', id, message: 'another plan was made since' };
    const rows = this.#planned.plan[list].slice(from, from + STEPS_PER_MESSAGE);
    return { type: 'rows', id, list, rows };
  }
}

/** What goes back at once; the lists are fetched. */
function summary(id: number, made: PassPlan, levels: Plan['levels'] | null): FromPlanner {
  const { steps, waiting, unplaceable, unspread, conflicts, minimumLeaderMoves, nextDeadlineMs } = made;
  return {
    type: 'planned',
    id,
    lengths: {
      steps: steps.length,
      waiting: waiting.length,
      unplaceable: unplaceable.length,
      unspread: unspread.length,
      conflicts: conflicts.length,
    },
    minimumLeaderMoves,
    nextDeadlineMs,
    levels,
  };
}

const port = parentPort;
if (port === null) throw new Error('the planner runs in a worker thread');
const thread = new PlannerThread();
port.on('message', (message: ToPlanner) => {
  const answer = thread.take(message);
  if (answer !== null) port.postMessage(answer);
});
