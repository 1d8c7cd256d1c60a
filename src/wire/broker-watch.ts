import type { Clock, Timer } from '../../raft/index.ts';
import type { BrokerPush, WatchedChange } from '../broker-protocol.ts';
import type { ControlPlane } from '../control-plane.ts';
import type { AssignmentRow, BrokerRow, Change, ChangeSet } from '../state/index.ts';
import { filterChanges, matchesFilter, type WatchFilter } from '../watch/index.ts';
import { watchedAssignment, watchedBroker, watchedChange } from './broker-rows.ts';

/** Rows of one snapshot chunk, changes of one message. */
export const MAX_WATCH_ROWS = 1_000;
/** A revision of more changes is looked through in parts, a turn each: many watchers get it at the same moment. */
export const CHANGES_AT_ONCE = 400;
/** Rows of a snapshot looked through in one turn, one or two milliseconds. */
const ROWS_AT_ONCE = 10_000;
/** Every this often an idle watcher is told how far it is, ms. */
export const PROGRESS_MS = 10_000;
/** A watcher whose connection holds more unread bytes than this is sent nothing until it has read them. */
export const MAX_UNREAD_BYTES = 1024 * 1024;
/** How long a watcher may leave them unread before its connection is closed with 1013, ms. */
export const UNREAD_TIMEOUT_MS = 30_000;
const UNREAD_POLL_MS = 20;

/** Snapshots that one node sends at once; more wait for their turn, so that what is small and urgent does not. */
export const MAX_SNAPSHOTS_AT_ONCE = 4;

/** Lets a few through at a time, in the order in which they came. */
export class SnapshotGate {
  #inside = 0;
  readonly #waiting: (() => void)[] = [];

  enter(run: () => void): void {
    if (this.#inside >= MAX_SNAPSHOTS_AT_ONCE) {
      this.#waiting.push(run);
      return;
    }
    this.#inside++;
    run();
  }

  leave(): void {
    this.#inside--;
    const next = this.#waiting.shift();
    if (next !== undefined) this.enter(next);
  }
}

export interface WatchHost {
  readonly gate: SnapshotGate;
  readonly plane: ControlPlane;
  readonly clock: Clock;
  push(message: BrokerPush): void;
  unreadBytes(): number;
  /** The watcher has not read for `UNREAD_TIMEOUT_MS`. */
  tooSlow(): void;
}

/**
 * One watch: a snapshot or a revision to go on from, then every change after it, in order, no gap and no repeat.
 * The ring is its only buffer: while the connection is full nothing is read from it, and a watcher that the ring
 * has left behind starts over from a snapshot.
 */
export class BrokerWatch {
  readonly #host: WatchHost;
  readonly #id: number;
  readonly #filter: WatchFilter;
  /** Everything up to here was pushed. */
  #revision = 0;
  #unsubscribe: (() => void) | null = null;
  #progress: Timer | null = null;
  #poll: Timer | null = null;
  /** Something of it goes on in a later turn; until then nothing is taken from the ring. */
  #isWaiting = false;
  #ended = false;
  /** Inside the gate: sending a snapshot. */
  #sending = false;

  constructor(host: WatchHost, id: number, broker: string | null) {
    this.#host = host;
    this.#id = id;
    this.#filter = broker === null ? {} : { broker };
  }

  /** `fromRevision`: what the watcher has, already applied here; `null`: nothing. Answers the revision it starts from. */
  start(fromRevision: number | null): number {
    const { feed, state } = this.#host.plane;
    const resumes = fromRevision !== null && fromRevision >= feed.floor;
    this.#revision = resumes ? fromRevision : state.revision;
    // Deferred, so that the answer with the watch's id goes first.
    this.#host.clock.defer(() => {
      if (this.#ended) return;
      this.#armProgress();
      if (!resumes) return this.#enterGate();
      this.#follow();
    });
    return this.#revision;
  }

  end(): void {
    this.#ended = true;
    this.#pause();
    this.#leaveGate();
    const { clock } = this.#host;
    if (this.#progress !== null) clock.clearTimeout(this.#progress);
    if (this.#poll !== null) clock.clearTimeout(this.#poll);
  }

  #follow(): void {
    let lost = false;
    const unsubscribe = this.#host.plane.feed.subscribe(
      this.#revision,
      (set) => this.#take(set),
      () => {
        lost = true;
        this.#unsubscribe = null;
        this.#resync();
      },
    );
    if (lost || this.#ended || this.#isWaiting) unsubscribe();
    else this.#unsubscribe = unsubscribe;
  }

  #pause(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = null;
  }

  #take(set: ChangeSet): void {
    // A pause within the same turn: what comes is read again from the ring.
    if (this.#ended || this.#isWaiting) return;
    if (this.#isFull()) {
      this.#pause();
      this.#whenRead(() => this.#follow());
    } else if (set.changes.length > CHANGES_AT_ONCE) {
      this.#pause();
      this.#whenRead(() => this.#takeLong(set, 0, []));
    } else {
      const { revision, changes } = set;
      const wanted = this.#wanted(changes);
      if (wanted.length > 0) this.#pushChanges(revision, wanted, false);
      this.#revision = revision;
    }
  }

  /** The part of a long set from a change on. `kept` was wanted of what came before it and is not sent yet. */
  #takeLong(set: ChangeSet, from: number, kept: readonly WatchedChange[]): void {
    const { revision, changes } = set;
    const next = from + CHANGES_AT_ONCE;
    const done = next >= changes.length;
    let wanted = [...kept, ...this.#wanted(changes.slice(from, next))];
    if (wanted.length > MAX_WATCH_ROWS) {
      this.#pushChanges(revision, wanted.slice(0, MAX_WATCH_ROWS), true);
      wanted = wanted.slice(MAX_WATCH_ROWS);
    }
    if (!done) {
      this.#whenRead(() => this.#takeLong(set, next, wanted));
      return;
    }
    if (wanted.length > 0) this.#pushChanges(revision, wanted, false);
    this.#revision = revision;
    this.#whenRead(() => this.#follow());
  }

  #wanted(changes: readonly Change[]): WatchedChange[] {
    const { state } = this.#host.plane;
    return filterChanges(changes, this.#filter).map((change) => watchedChange(change, state));
  }

  #pushChanges(revision: number, changes: readonly WatchedChange[], isPart: boolean): void {
    const more = isPart ? ({ more: true } as const) : {};
    this.#push({ type: 'watch.changes', watchId: this.#id, revision, changes, ...more });
  }

  #resync(): void {
    if (this.#ended) return;
    this.#push({ type: 'watch.resync', watchId: this.#id });
    this.#whenRead(() => this.#enterGate());
  }

  #enterGate(): void {
    this.#host.gate.enter(() => {
      this.#sending = true;
      if (this.#ended) this.#leaveGate();
      else this.#sendSnapshot();
    });
  }

  #leaveGate(): void {
    if (!this.#sending) return;
    this.#sending = false;
    this.#host.gate.leave();
  }

  /** All rows as of one revision, chunk by chunk as they are read; then what came since, from the ring. */
  #sendSnapshot(): void {
    const { state } = this.#host.plane;
    if (state.revision < this.#revision) throw new Error('a snapshot older than what was pushed');
    this.#revision = state.revision;
    this.#choose(state.assignments.list(), [...state.brokers.values()], 0, []);
  }

  /** Looks for what is wanted among rows that are immutable, some a turn; then sends it. */
  #choose(
    rows: readonly AssignmentRow[],
    brokers: readonly BrokerRow[],
    from: number,
    chosen: AssignmentRow[],
  ): void {
    if (this.#ended) return;
    const next = from + ROWS_AT_ONCE;
    for (const row of rows.slice(from, next)) if (matchesFilter(row, this.#filter)) chosen.push(row);
    if (next >= rows.length) this.#sendChunk(chosen, brokers, 0);
    else this.#host.clock.defer(() => this.#choose(rows, brokers, next, chosen));
  }

  #sendChunk(rows: readonly AssignmentRow[], brokers: readonly BrokerRow[], from: number): void {
    const { state } = this.#host.plane;
    const next = from + MAX_WATCH_ROWS;
    // Brokers first, then assignments, as one list cut into chunks.
    const brokerPart = brokers.slice(from, next);
    const rowPart = rows.slice(Math.max(0, from - brokers.length), Math.max(0, next - brokers.length));
    const done = next >= brokers.length + rows.length;
    this.#push({
      type: 'watch.snapshot',
      watchId: this.#id,
      revision: this.#revision,
      assignments: rowPart.map((row) => watchedAssignment(row, state)),
      brokers: brokerPart.map(watchedBroker),
      done,
    });
    if (done) this.#leaveGate();
    this.#whenRead(() => (done ? this.#follow() : this.#sendChunk(rows, brokers, next)));
  }

  #armProgress(): void {
    this.#progress = this.#host.clock.setTimeout(() => {
      if (this.#unsubscribe !== null) {
        // Whatever the ring holds after the last push was not for this watcher.
        this.#revision = Math.max(this.#revision, this.#host.plane.feed.revision);
        this.#push({ type: 'watch.progress', watchId: this.#id, revision: this.#revision });
      }
      this.#armProgress();
    }, PROGRESS_MS);
  }

  #isFull(): boolean {
    return this.#host.unreadBytes() > MAX_UNREAD_BYTES;
  }

  /** Runs `then` once the connection has room, in a later turn. */
  #whenRead(then: () => void): void {
    const { clock } = this.#host;
    const deadlineMs = clock.now() + UNREAD_TIMEOUT_MS;
    this.#isWaiting = true;
    const look = (): void => {
      this.#poll = null;
      if (this.#ended) return;
      if (!this.#isFull()) {
        this.#isWaiting = false;
        then();
      } else if (clock.now() >= deadlineMs) this.#host.tooSlow();
      else this.#poll = clock.setTimeout(look, UNREAD_POLL_MS);
    };
    clock.defer(look);
  }

  #push(message: BrokerPush): void {
    this.#host.push(message);
  }
}
