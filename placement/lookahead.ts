import { NO_HOLDS, type Holds } from './holds.ts';
import { splitShard } from './model.ts';
import type { Reports, Snapshot, Step } from './plan-types.ts';
import { SimCluster } from './sim-cluster.ts';

/** What one play may work through, in passes times shards; a small cluster's has so many passes at most. */
const MAX_WORK = 16_384;
const MAX_PASSES = 256;
/** Larger clusters are not played at all: fewer passes than this show little. */
const MIN_PASSES = 16;
/** Of no row: a play sees what would move again if it could. */
const NO_PHASE = -1;
/** What all plays of one plan may work through, in longest plays. */
const MAX_PLAYS = 4;

/** A pass, as far as it is played. */
export interface Played {
  readonly steps: readonly Step[];
  readonly nextDeadlineMs: number | null;
}

/** A pass over the snapshot that is planned for, some starts held back. */
export interface Candidate extends Played {
  readonly shardCount: number;
  /** Some broker lacks room, or some shard. */
  readonly isTight: boolean;
}

/** How a play decides: the first pass with what is held, the others without. */
export interface Decisions<T extends Candidate> {
  readonly first: (holds: Holds) => T;
  readonly later: (snapshot: Snapshot, reports: Reports) => Played;
}

/**
 * Where a broker is full, room that appears on the way changes who should go where: what starts now may be made good by
 * what the room allows: the leadership moves again, or another of its resource leaves the broker that got it, or the copy
 * goes back. So the passes that follow are played, as `simulate` would. A drained leadership that may go anywhere takes
 * the first broker that it keeps. Where that is not enough, what would be made good is held as long as other moves go on,
 * or will at a known time. Once nothing else moves, what was foreseen cannot be helped.
 */
export function lookAhead<T extends Candidate>(snapshot: Snapshot, { first, later }: Decisions<T>): T {
  const plain = first(NO_HOLDS);
  if (!isUncertain(plain)) return plain;
  const play = new Play(snapshot, plain.shardCount, later);
  const foreseen = play.madeGood(plain.steps);
  if (foreseen.length === 0) return plain;
  const attempt = (way: 'waits' | 'barred', isGood: (made: T, draft: Draft) => boolean): T | null => {
    const draft = new Draft();
    for (let found = foreseen; !play.isOver && draft.add(way, found);) {
      const made = first(draft);
      if (!isGood(made, draft)) return null;
      found = play.madeGood(made.steps);
      if (found.length === 0) return made;
    }
    return null;
  };
  const moving = snapshot.assignments.filter(({ move }) => move !== null);
  const othersMove = ({ steps, nextDeadlineMs }: T): boolean =>
    steps.some(isFresh) ||
    moving.some(({ failedMoves }) => failedMoves === 0) ||
    (moving.length === 0 && steps.length === 0 && nextDeadlineMs !== null);
  return attempt('barred', allStart) ?? attempt('waits', othersMove) ?? plain;
}

/** Something starts while room is scarce, in a cluster that is small enough. */
function isUncertain({ isTight, shardCount, steps }: Candidate): boolean {
  return isTight && shardCount <= MAX_WORK / MIN_PASSES && steps.some(mayBeMadeGood);
}

/** Every leadership that was sent elsewhere goes somewhere. */
function allStart({ steps }: Candidate, { barred }: Draft): boolean {
  const started = new Set(steps.filter(isStart).map(({ shard }) => shard));
  return [...barred.keys()].every((shard) => started.has(shard));
}

function isStart({ step }: Step): boolean {
  return step === 'stage' || step === 'join';
}

/** Nothing goes back to a broker that is leaving or lost, nor to none. */
function mayBeMadeGood(step: Step): boolean {
  return isStart(step) && (step.role === 'leader' || step.reason === 'level' || step.reason === 'zone');
}

/** Nothing is held for the sake of a move that failed before: it may fail for ever. */
function isFresh(step: Step): boolean {
  return !isStart(step) || step.next.failedMoves === 0;
}

/** A start that is made good: a leadership that moves on to `next`, or a copy that goes back there. */
interface MadeGood {
  readonly start: Step;
  readonly next: string;
}

class Draft implements Holds {
  readonly waits = { leader: new Map<string, string>(), follower: new Map<string, string>() };
  readonly barred = new Map<string, Set<string>>();

  /** Answers whether it holds more than before. */
  add(way: 'waits' | 'barred', found: readonly MadeGood[]): boolean {
    let more = false;
    for (const { start, next } of found) {
      const { shard, role, to } = start;
      if (way === 'waits') {
        more ||= !this.waits[role].has(shard);
        this.waits[role].set(shard, waitText(start, next));
      } else if (start.why.rule === 'targets_out_of_reach' && to !== null) {
        const barred = this.barred.get(shard) ?? new Set<string>();
        more ||= !barred.has(to);
        this.barred.set(shard, barred.add(to));
      }
    }
    return more;
  }
}

function waitText({ role, from, to }: Step, next: string): string {
  const what = role === 'leader' ? 'its leadership' : `its copy on ${from}`;
  return `${what} would go to ${to} now and to ${next} later; it waits while other moves go on`;
}

/** Plays passes on from one snapshot, again and again, each within a bound, and all within another. */
class Play {
  readonly #snapshot: Snapshot;
  readonly #later: Decisions<Candidate>['later'];
  readonly #passes: number;
  #left: number;

  constructor(snapshot: Snapshot, shards: number, later: Decisions<Candidate>['later']) {
    this.#snapshot = snapshot;
    this.#later = later;
    this.#passes = Math.min(MAX_PASSES, Math.floor(MAX_WORK / shards));
    this.#left = MAX_PLAYS * this.#passes;
  }

  /** Nothing more can be played. */
  get isOver(): boolean {
    return this.#left <= 0;
  }

  /** Which starts of a pass the passes after it make good, as far as they can be played. */
  madeGood(steps: readonly Step[]): MadeGood[] {
    const finished = this.#finishedAfter(steps);
    return steps.filter(mayBeMadeGood).flatMap((start) => {
      const next = whereNext(start, finished.get(splitShard(start.shard).resource) ?? []);
      return next === null ? [] : [{ start, next }];
    });
  }

  /** By resource: the moves that are finished once the cluster wants nothing more. */
  #finishedAfter(steps: readonly Step[]): Map<string, Step[]> {
    const { nowMs, ...rows } = this.#snapshot;
    const cluster = new SimCluster({ ...rows, timeMs: nowMs });
    const finished = new Map<string, Step[]>();
    let next: Played = { steps, nextDeadlineMs: null };
    cluster.beginPass();
    for (let passes = 0; ; passes++) {
      for (const step of next.steps) {
        if (!cluster.attempt(step) || (step.step !== 'cutOver' && step.step !== 'seat')) continue;
        const { resource } = splitShard(step.shard);
        const known = finished.get(resource);
        if (known === undefined) finished.set(resource, [step]);
        else known.push(step);
      }
      if (next.steps.length === 0 && !cluster.awaitsCopies) {
        if (next.nextDeadlineMs === null) return finished;
        cluster.nowMs = next.nextDeadlineMs;
      }
      if (passes === this.#passes || this.isOver) return finished;
      this.#left--;
      cluster.beginPass();
      next = this.#later({ ...cluster.snapshot(), phase: NO_PHASE }, cluster.reports());
    }
  }
}

/** Where a start leads to after it has finished, if that makes it good; `null`: nowhere. */
function whereNext({ shard, role, from, to }: Step, finished: readonly Step[]): string | null {
  const own = finished.findIndex((step) => step.shard === shard && step.role === role && step.to === to);
  if (own < 0) return null;
  const again = (step: Step): boolean =>
    step.role === 'leader'
      ? step.shard === shard || (step.from === to && step.reason === 'balance')
      : step.shard === shard && step.from === to && step.to === from;
  return finished.slice(own + 1).find((step) => step.role === role && again(step))?.to ?? null;
}
