/** A client that leaves text unread for so long, ms, having taken less than `MIN_BYTES_PER_WINDOW` of it, is dropped. */
export const READ_WINDOW_MS = 30_000;
const MIN_BYTES_PER_WINDOW = 64 * 1024;

/** Whether a client reads what it asked for, by the bytes that the system has taken for it. */
export class ReadPace {
  #sinceMs: number;
  #from: number;

  constructor(nowMs: number, taken = 0) {
    this.#sinceMs = nowMs;
    this.#from = taken;
  }

  /** `taken`: bytes in all that the system took. True: the client is too slow. */
  isTooSlow(nowMs: number, taken: number): boolean {
    if (taken - this.#from >= MIN_BYTES_PER_WINDOW) {
      this.#from = taken;
      this.#sinceMs = nowMs;
    }
    return nowMs - this.#sinceMs >= READ_WINDOW_MS;
  }
}
