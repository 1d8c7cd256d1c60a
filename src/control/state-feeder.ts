import { assignmentRow } from '../../placement/index.ts';
import type { AssignmentRow, Change, StateView } from '../state/index.ts';
import type { ChangeFeed } from '../watch/index.ts';
import { ROWS_PER_MESSAGE, type StatePart } from './planner-messages.ts';
import { ShardQueue } from './shard-queue.ts';

/**
 * Cuts the state, and then what changes of it, into parts of at most 1,000 rows. It notes only which rows are to be
 * sent and reads them when a part is made, so that whoever has taken every part holds the state of that very moment.
 */
export class StateFeeder {
  readonly #state: StateView;
  readonly #feed: ChangeFeed;
  readonly #onChange: () => void;
  readonly #brokers = new Set<string>();
  readonly #resources = new Set<string>();
  readonly #assignments = new ShardQueue();
  /** Rows not visited yet of those there were at the beginning. Never a live iterator: it would miss what an entry that is applied in turns has removed so far. */
  #rest: Iterator<AssignmentRow> | null = null;
  #unsubscribe: () => void = () => {};

  /** `onChange`: there is something to send. */
  constructor(state: StateView, feed: ChangeFeed, onChange: () => void) {
    this.#state = state;
    this.#feed = feed;
    this.#onChange = onChange;
  }

  /** Begins anew with the whole state. `onReset` is called each time that becomes necessary. */
  start(onReset: () => void): void {
    this.#unsubscribe();
    this.#assignments.clear();
    for (const id of this.#state.brokers.keys()) this.#brokers.add(id);
    for (const key of this.#state.resources.keys()) this.#resources.add(key);
    this.#rest = this.#state.assignments.list().values();
    onReset();
    this.#unsubscribe = this.#feed.subscribe(
      this.#state.revision,
      ({ changes }) => {
        for (const change of changes) this.#note(change);
        this.#onChange();
      },
      () => this.start(onReset),
    );
    this.#onChange();
  }

  stop(): void {
    this.#unsubscribe();
    this.#rest = null;
    this.#brokers.clear();
    this.#resources.clear();
    this.#assignments.clear();
  }

  /** The next part; `null`: everything has been sent. */
  next(): StatePart | null {
    const { state, rows } = { state: this.#state, rows: new Part() };
    take(this.#brokers, rows.room(), (id) => {
      const row = state.brokers.get(id);
      if (row === undefined) rows.goneBrokers.push(id);
      else rows.brokers.push(row);
    });
    take(this.#resources, rows.room(), (key) => {
      const row = state.resources.get(key);
      if (row === undefined) rows.goneResources.push(key);
      else rows.resources.push(row);
    });
    const send = (shard: string): void => {
      const row = state.assignments.get(shard);
      if (row === undefined) rows.goneAssignments.push(shard);
      else rows.assignments.push(assignmentRow(row, state.phase));
    };
    this.#assignments.take(rows.room()).forEach(send);
    while (this.#rest !== null && rows.room() > 0) {
      const { done, value } = this.#rest.next();
      if (done === true) this.#rest = null;
      else send(value.shard);
    }
    return rows.part();
  }

  #note(change: Change): void {
    switch (change.kind) {
      case 'broker':
        this.#brokers.add(change.broker.id);
        return;
      case 'brokerRemoved':
        this.#brokers.add(change.id);
        return;
      case 'resource':
        this.#resources.add(`${change.resource.kind}:${change.resource.name}`);
        return;
      case 'resourceRemoved':
        this.#resources.add(change.resource);
        return;
      case 'assignment':
        this.#assignments.add(change.assignment.shard);
        return;
      case 'removed':
        this.#assignments.add(change.shard);
        return;
      case 'policy':
    }
  }
}

/** A part while it is filled. */
class Part {
  readonly brokers: StatePart['brokers'][number][] = [];
  readonly resources: StatePart['resources'][number][] = [];
  readonly assignments: StatePart['assignments'][number][] = [];
  readonly goneBrokers: string[] = [];
  readonly goneResources: string[] = [];
  readonly goneAssignments: string[] = [];

  room(): number {
    return ROWS_PER_MESSAGE - this.#size();
  }

  part(): StatePart | null {
    if (this.#size() === 0) return null;
    const { brokers, resources, assignments, goneBrokers, goneResources, goneAssignments } = this;
    const gone = { brokers: goneBrokers, resources: goneResources, assignments: goneAssignments };
    return { brokers, resources, assignments, gone };
  }

  #size(): number {
    return (
      this.brokers.length +
      this.resources.length +
      this.assignments.length +
      this.goneBrokers.length +
      this.goneResources.length +
      this.goneAssignments.length
    );
  }
}

function take(from: Set<string>, atMost: number, each: (key: string) => void): void {
  let left = atMost;
  for (const key of from) {
    if (left-- <= 0) return;
    from.delete(key);
    each(key);
  }
}
