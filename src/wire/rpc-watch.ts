import type { Clock, Timer } from '../../raft/index.ts';
import { assignmentRow, brokerRow, resourceRow } from '../../placement/index.ts';
import type { ControlPlane } from '../control-plane.ts';
import { EvenkeelError } from '../errors.ts';
import type { AssignmentRow, Change, ChangeSet } from '../state/index.ts';
import { counterSchema } from './rpc-schemas.ts';
import { defineRead, type Subscriber } from './rpc-types.ts';

/** Rows in one snapshot notification, and changes in one of a revision: a longer one comes in parts, a turn each. */
export const ROWS_PER_NOTIFICATION = 1_000;
/** A watcher that leaves more than this unread is resynced once it has read it, bytes. */
const MAX_WATCH_BUFFER_BYTES = 4 * 1024 * 1024;
const DRAIN_POLL_MS = 50;
const PROGRESS_MS = 10_000;
export const MAX_WATCHES_PER_CONNECTION = 16;

const watch = defineRead({
  name: 'watch',
  summary: 'Changes as notifications, one a revision, in order: `watch.changes`; over the WebSocket only',
  params: { fromRevision: counterSchema.optional() },
  answer: { watchId: counterSchema },
  http: null,
  handler({ plane, clock, subscriber }, { fromRevision }) {
    if (subscriber === null) {
      throw new EvenkeelError(
        'refused',
        'watch needs a connection to push on: ask over the WebSocket at /rpc',
      );
    }
    if (subscriber.watches.size >= MAX_WATCHES_PER_CONNECTION) {
      const message = `a connection may have ${MAX_WATCHES_PER_CONNECTION} watches; end one with unwatch`;
      throw new EvenkeelError('limit_exceeded', message);
    }
    const { revision } = plane.state;
    if (fromRevision !== undefined && fromRevision > revision) {
      const message = `this node is at revision ${revision}, before ${fromRevision}; try again or another node`;
      throw new EvenkeelError('unavailable', message);
    }
    const watchId = subscriber.nextWatchId();
    const running = new Watch(plane, clock, subscriber, watchId);
    subscriber.watches.set(watchId, () => running.end());
    running.start(fromRevision ?? revision);
    return { watchId };
  },
});

const unwatch = defineRead({
  name: 'unwatch',
  summary: 'End a watch of this connection',
  params: { watchId: counterSchema },
  answer: {},
  http: null,
  handler({ subscriber }, { watchId }) {
    const end = subscriber?.watches.get(watchId);
    if (end === undefined) throw new EvenkeelError('not_found', `no watch ${watchId} on this connection`);
    subscriber?.watches.delete(watchId);
    end();
    return {};
  },
});

/** All rows of one revision: one list, cut into notifications. */
interface Snapshot {
  readonly head: readonly Change[];
  readonly rows: readonly AssignmentRow[];
}

/** One watcher. Either follows the ring, or sends a snapshot and then follows from its revision. */
class Watch {
  readonly #plane: ControlPlane;
  readonly #clock: Clock;
  readonly #subscriber: Subscriber;
  readonly #watchId: number;
  #ended = false;
  /** A long revision or a snapshot is being sent, or waits for room: until its last part nothing is taken from the ring. */
  #isSending = false;
  #unsubscribe: (() => void) | null = null;
  #progress: Timer | null = null;
  /** The revision up to which the watcher knows everything. */
  #sent = 0;

  constructor(plane: ControlPlane, clock: Clock, subscriber: Subscriber, watchId: number) {
    this.#plane = plane;
    this.#clock = clock;
    this.#subscriber = subscriber;
    this.#watchId = watchId;
  }

  start(fromRevision: number): void {
    this.#sent = fromRevision;
    // Deferred, so that the answer with the watch's number goes out before its first notification.
    this.#clock.defer(() => {
      if (!this.#ended) this.#follow();
    });
    this.#scheduleProgress();
  }

  end(): void {
    this.#ended = true;
    this.#stopFollowing();
    if (this.#progress !== null) this.#clock.clearTimeout(this.#progress);
  }

  #follow(): void {
    let lost = false;
    const unsubscribe = this.#plane.feed.subscribe(
      this.#sent,
      (set) => this.#push(set),
      () => {
        lost = true;
        this.#startOver();
      },
    );
    if (lost || this.#ended || this.#isSending) unsubscribe();
    else this.#unsubscribe = unsubscribe;
  }

  #stopFollowing(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = null;
  }

  #push(set: ChangeSet): void {
    if (set.revision <= this.#sent || this.#isSending) return;
    if (set.changes.length <= ROWS_PER_NOTIFICATION) {
      this.#pushPart(set, 0);
      return;
    }
    this.#stopFollowing();
    this.#isSending = true;
    this.#clock.defer(() => this.#pushPart(set, 0));
  }

  #pushPart(set: ChangeSet, from: number): void {
    if (this.#ended) return;
    if (this.#subscriber.bufferedBytes() > MAX_WATCH_BUFFER_BYTES) {
      this.#startOver();
      return;
    }
    const { revision, changes } = set;
    const next = from + ROWS_PER_NOTIFICATION;
    const more = next < changes.length ? { more: true } : {};
    const part = changes.slice(from, next).map(changeFields);
    this.#notify('watch.changes', { revision, changes: part, ...more });
    if (next < changes.length) {
      this.#clock.defer(() => this.#pushPart(set, next));
      return;
    }
    this.#sent = revision;
    if (!this.#isSending) return;
    this.#isSending = false;
    this.#follow();
  }

  #startOver(): void {
    this.#stopFollowing();
    this.#isSending = true;
    this.#resyncWhenDrained();
  }

  /** Waits until the watcher has read what it was sent: a snapshot on top of it would only be lost again. */
  #resyncWhenDrained(): void {
    if (this.#ended) return;
    if (this.#subscriber.bufferedBytes() > MAX_WATCH_BUFFER_BYTES / 2) {
      this.#clock.setTimeout(() => this.#resyncWhenDrained(), DRAIN_POLL_MS);
      return;
    }
    const { state } = this.#plane;
    if (state.revision < this.#sent) {
      this.#clock.setTimeout(() => this.#resyncWhenDrained(), DRAIN_POLL_MS);
      return;
    }
    this.#notify('watch.resync', {});
    const head: Change[] = [
      { kind: 'policy', policy: state.policy },
      ...Array.from(state.brokers.values(), (broker) => ({ kind: 'broker', broker }) as const),
      ...Array.from(state.resources.values(), (resource) => ({ kind: 'resource', resource }) as const),
    ];
    this.#sendSnapshot(state.revision, { head, rows: state.assignments.list() }, 0);
  }

  #sendSnapshot(revision: number, snapshot: Snapshot, offset: number): void {
    if (this.#ended) return;
    if (this.#subscriber.bufferedBytes() > MAX_WATCH_BUFFER_BYTES) {
      this.#clock.setTimeout(() => this.#sendSnapshot(revision, snapshot, offset), DRAIN_POLL_MS);
      return;
    }
    const { head, rows } = snapshot;
    const next = offset + ROWS_PER_NOTIFICATION;
    const done = next >= head.length + rows.length;
    const part = rows.slice(Math.max(0, offset - head.length), Math.max(0, next - head.length));
    const changes = part.map((assignment) => ({ kind: 'assignment', assignment, previous: null }) as const);
    const chunk = [...head.slice(offset, next), ...changes].map(changeFields);
    this.#notify('watch.snapshot', { revision, rows: chunk, done });
    if (done) {
      this.#sent = revision;
      this.#isSending = false;
      this.#follow();
      return;
    }
    this.#clock.defer(() => this.#sendSnapshot(revision, snapshot, next));
  }

  #scheduleProgress(): void {
    this.#progress = this.#clock.setTimeout(() => {
      // Everything up to the feed's revision was pushed: what is left had nothing to show.
      if (this.#unsubscribe !== null) {
        this.#sent = Math.max(this.#sent, this.#plane.feed.revision);
        this.#notify('watch.progress', { revision: this.#sent });
      }
      this.#scheduleProgress();
    }, PROGRESS_MS);
  }

  #notify(method: string, params: Readonly<Record<string, unknown>>): void {
    this.#subscriber.notify(method, { watchId: this.#watchId, ...params });
  }
}

/** A change as watchers see it: rows with the cluster file's fields, but for what has moved, which changes without a row. */
function changeFields(change: Change): object {
  switch (change.kind) {
    case 'assignment':
      return { kind: change.kind, assignment: assignmentRow(change.assignment, null) };
    case 'broker':
      return { kind: change.kind, broker: brokerRow(change.broker) };
    case 'resource':
      return { kind: change.kind, resource: resourceRow(change.resource) };
    case 'removed':
      return { kind: change.kind, shard: change.shard };
    case 'brokerRemoved':
    case 'resourceRemoved':
    case 'policy':
      return change;
  }
}

export const WATCH_METHODS = [watch, unwatch];
