import { parentPort } from 'node:worker_threads';
import {
  plan,
  resourceKey,
  type Assignment,
  type Broker,
  type Resource,
  type Snapshot,
} from '../../placement/index.ts';
import { answerQuestion } from './planner-host.ts';
import {
  COUNTS_PER_MESSAGE,
  STEPS_PER_MESSAGE,
  type FromPlanner,
  type PlanLists,
  type PlannerCall,
  type PlannerCalls,
  type PlannerFacts,
  type StatePart,
  type ToPlanner,
} from './planner-messages.ts';
import { SettledPlan } from './settled-plan.ts';
import { sweep } from './sweep.ts';

/** A plan of so many steps leaves hundreds of MiB behind: swept up before it is read, which the thread of Raft needs memory for. */
const SWEPT_FROM_STEPS = 100_000;

/** Of a plan what is not read yet. */
interface OpenPlan {
  readonly id: number;
  readonly lists: { readonly [K in keyof PlanLists]?: OpenList };
}

interface OpenList {
  /** The last first: what is read is let go. */
  readonly rows: unknown[];
  readonly rowsPerMessage: number;
}

/** The planner's thread: its own copy of the state, and of the last plans what is not read yet. */
class PlannerThread {
  readonly #brokers = new Map<string, Broker>();
  readonly #resources = new Map<string, Resource>();
  readonly #assignments = new Map<string, Assignment>();
  /** One string a broker: every row that is read brings its own. */
  readonly #ids = new Map<string, string>();
  readonly #settled = new SettledPlan();
  #lastId = 0;
  /** Nothing in it is of the copy: that changes while the steps are read. */
  #pass: OpenPlan | null = null;
  #full: OpenPlan | null = null;

  take(message: ToPlanner): FromPlanner | null {
    switch (message.type) {
      case 'reset':
        this.#settled.forget();
        this.#brokers.clear();
        this.#resources.clear();
        this.#assignments.clear();
        return null;
      case 'part':
        this.#write(message.part);
        return null;
      case 'call':
        return this.#answer(message.id, message.call);
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

  #answer(id: number, call: PlannerCall): FromPlanner {
    try {
      return { type: 'answered', id, answer: this.#call(call) };
    } catch (error) {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
      return { type: 'failed', id, message };
    }
  }

  #call({ call, params }: PlannerCall): PlannerCalls[keyof PlannerCalls]['answer'] {
    switch (call) {
      case 'plan':
        return this.#planPass(params);
      case 'fullPlan':
        return this.#planInFull(params);
      case 'question':
        return answerQuestion(this.#snapshot(params), params.input.reports, params.question);
      case 'rows':
        return this.#read(params);
    }
  }

  #planPass({ input, ...others }: PlannerFacts): PlannerCalls['plan']['answer'] {
    this.#pass = null;
    const facts = { ...others, nowMs: input.nowMs };
    const { summary, steps } = this.#settled.plan(facts, input.reports, () => this.#rows());
    const id = ++this.#lastId;
    this.#pass = { id, lists: { steps: openList(steps) } };
    if (steps.length >= SWEPT_FROM_STEPS) sweep();
    return { plan: id, summary };
  }

  #planInFull(facts: PlannerFacts): PlannerCalls['fullPlan']['answer'] {
    this.#full = null;
    const made = plan(this.#snapshot(facts), facts.input.reports);
    const { minimumLeaderMoves, nextDeadlineMs } = made;
    const { leaders, ...levels } = made.levels;
    const id = ++this.#lastId;
    const lists = {
      steps: openList(made.steps),
      waiting: openList(made.waiting),
      unplaceable: openList(made.unplaceable),
      unspread: openList(made.unspread),
      conflicts: openList(made.conflicts),
      leaders: openList(
        Object.entries(leaders),
        Math.ceil(COUNTS_PER_MESSAGE / Math.max(1, this.#brokers.size)),
      ),
    };
    this.#full = { id, lists };
    return { plan: id, rest: { minimumLeaderMoves, nextDeadlineMs, levels } };
  }

  #snapshot({ input: { nowMs }, policy, firstRegisteredAtMs, phase }: PlannerFacts): Snapshot {
    return { nowMs, policy, firstRegisteredAtMs, phase, ...this.#rows() };
  }

  #rows(): Pick<Snapshot, 'brokers' | 'resources' | 'assignments'> {
    return {
      brokers: [...this.#brokers.values()],
      resources: [...this.#resources.values()],
      assignments: [...this.#assignments.values()],
    };
  }

  #read({ plan: id, list }: PlannerCalls['rows']['params']): PlannerCalls['rows']['answer'] {
    const open = [this.#pass, this.#full].find((one) => one?.id === id)?.lists[list];
    if (open === undefined) throw new Error('another plan was made since');
    const { rows, rowsPerMessage } = open;
    const slice = rows.splice(Math.max(0, rows.length - rowsPerMessage)).reverse();
    return { rows: slice, left: rows.length };
  }
}

function openList(rows: readonly unknown[], rowsPerMessage = STEPS_PER_MESSAGE): OpenList {
  return { rows: rows.toReversed(), rowsPerMessage };
}

const port = parentPort;
if (port === null) throw new Error('the planner runs in a worker thread');
const thread = new PlannerThread();
port.on('message', (message: ToPlanner) => {
  const answer = thread.take(message);
  if (answer !== null) port.postMessage(answer);
});
