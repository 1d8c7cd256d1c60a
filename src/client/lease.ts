import type { Clock } from '../../raft/index.ts';

/** A moment on both of a machine's clocks. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** What the cluster's answers say of a lease. */
export interface LeaseTerms {
  readonly leaseMs: number;
  /** How far wall and monotonic clock may drift apart within it. */
  readonly marginMs: number;
}

/**
 * A broker's right to serve as leader: `leaseMs` from the sending of the last heartbeat that was answered, on its
 * own monotonic clock. Where wall and monotonic clock have drifted apart by more than `marginMs` since (a machine
 * that slept), it has ended too.
 */
export class Lease {
  readonly #clock: Clock;
  #since: Moment | null = null;
  #terms: LeaseTerms = { leaseMs: 0, marginMs: 0 };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** To be taken right before a heartbeat is sent. */
  moment(): Moment {
    return { monotonicMs: this.#clock.now(), wallMs: this.#clock.wallNow() };
  }

  /** A heartbeat sent at that moment was answered. An answer that overtook a later one shortens nothing. */
  renew(sentAt: Moment, terms: LeaseTerms): void {
    const before = this.#since === null ? -Infinity : this.#since.monotonicMs + this.#terms.leaseMs;
    if (sentAt.monotonicMs + terms.leaseMs < before) return;
    this.#since = sentAt;
    this.#terms = terms;
  }

  /** The registration it belonged to is over. */
  end(): void {
    this.#since = null;
  }

  isValid(): boolean {
    if (this.#since === null) return false;
    const ranMs = this.#clock.now() - this.#since.monotonicMs;
    const { leaseMs, marginMs } = this.#terms;
    if (ranMs >= leaseMs) return false;
    return Math.abs(this.#clock.wallNow() - this.#since.wallMs - ranMs) <= marginMs;
  }
}
