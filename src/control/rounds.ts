import { unawaited } from '../unawaited.ts';

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Lets many wait for one quorum round: whoever joins is answered by a round that began after they came. One
 * round is under way at a time; while it runs, the next gathers.
 */
export class QuorumRounds {
  readonly #run: () => Promise<void>;
  #waiting: Waiter[] = [];
  #running = false;

  /** `run` starts a round and resolves once a quorum has acknowledged it. */
  constructor(run: () => Promise<void>) {
    this.#run = run;
  }

  /** Resolves after a round that began after this call; rejects as that round did. */
  join(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      if (!this.#running) unawaited(this.#pump());
    });
  }

  async #pump(): Promise<void> {
    this.#running = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#run();
        for (const waiter of batch) waiter.resolve();
      } catch (error) {
        for (const waiter of batch) waiter.reject(error);
      }
    }
    this.#running = false;
  }
}
