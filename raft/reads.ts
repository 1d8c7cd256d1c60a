import type { Random } from './clock.ts';
import { committedIndex } from './quorum.ts';
import type { Configuration, MemberId } from './types.ts';

/** Who asked: this member (by key) or a peer (by its token). */
export type ReadOrigin = { readonly key: number } | { readonly from: MemberId; readonly token: number };

interface WaitingRead {
  readonly origin: ReadOrigin;
  readonly index: number;
  readonly round: number;
}

/**
 * ReadIndex at the leader (thesis, section 6.4). A read waits for a heartbeat round begun after it came; the
 * round's number, together with the term of the reply that carries it, is the token, fresh for every
 * attempt (hazard 1). One round serves all reads that wait when it begins.
 */
export class LeaderReads {
  round = 0;
  #queued: ReadOrigin[] = [];
  #waiting: WaitingRead[] = [];

  get size(): number {
    return this.#queued.length + this.#waiting.length;
  }

  ask(origin: ReadOrigin): void {
    this.#queued.push(origin);
  }

  /** Whether a round should begin for those that came since the last one did; one that is under way goes first. */
  wantsRound(): boolean {
    return this.#queued.length > 0 && this.#waiting.length === 0;
  }

  /** Begins a round at the present commit and answers its number. */
  begin(commit: number | null): number {
    this.round += 1;
    if (commit !== null) {
      for (const origin of this.#queued) this.#waiting.push({ origin, index: commit, round: this.round });
      this.#queued = [];
    }
    return this.round;
  }

  /** The reads that a quorum's acknowledgements now allow. */
  confirm(configuration: Configuration, ackedRound: (id: MemberId) => number): WaitingRead[] {
    if (this.#waiting.length === 0) return [];
    const confirmed = committedIndex(configuration, ackedRound);
    const ready = this.#waiting.filter((read) => read.round <= confirmed);
    if (ready.length > 0) this.#waiting = this.#waiting.filter((read) => read.round > confirmed);
    return ready;
  }

  /** Ends all: the term is over. */
  clear(): ReadOrigin[] {
    const origins = [...this.#waiting.map((read) => read.origin), ...this.#queued];
    this.#waiting = [];
    this.#queued = [];
    this.round = 0;
    return origins;
  }
}

/** Reads asked of the leader by another member: one token is out at a time and stands for all that waited when it left. */
export class ForwardedReads {
  #token: number;
  #queued: number[] = [];
  #out: readonly number[] = [];
  #elapsedMs = 0;

  /** Tokens start at a random place, so that an answer to an earlier life of this member fits none of them. */
  constructor(random: Random) {
    this.#token = random.nextUint32() * 2 ** 20;
  }

  get size(): number {
    return this.#queued.length + this.#out.length;
  }

  ask(key: number): void {
    this.#queued.push(key);
  }

  /** The token to send now, or `null`. */
  begin(): number | null {
    if (this.#queued.length === 0 || this.#out.length > 0) return null;
    this.#out = this.#queued;
    this.#queued = [];
    this.#elapsedMs = 0;
    this.#token += 1;
    return this.#token;
  }

  /** The keys an answer settles: none for any token but the last. */
  settle(token: number): readonly number[] {
    return token === this.#token ? this.giveUp() : [];
  }

  /** The keys whose question has been out too long. */
  expire(elapsedMs: number, limitMs: number): readonly number[] {
    if (this.#out.length === 0) return [];
    this.#elapsedMs += elapsedMs;
    return this.#elapsedMs >= limitMs ? this.giveUp() : [];
  }

  /** The keys whose question is out: its answer counts no more. */
  giveUp(): readonly number[] {
    const keys = this.#out;
    this.#out = [];
    return keys;
  }

  /** All keys: this member becomes the one to ask. */
  clear(): readonly number[] {
    const keys = [...this.#out, ...this.#queued];
    this.#out = [];
    this.#queued = [];
    return keys;
  }
}
