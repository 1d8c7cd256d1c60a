/** A connection from which nothing is read between two pings is dropped. */
export const PING_EVERY_MS = 5_000;

/** Whether the other end of a connection lives: any byte read since the last look says so, also one of an unfinished message. */
export class Liveness {
  #readBefore = 0;

  /** Looked at every `PING_EVERY_MS`, with the bytes that were read since the connection opened. */
  isSilent(bytesRead: number): boolean {
    const silent = bytesRead === this.#readBefore;
    this.#readBefore = bytesRead;
    return silent;
  }
}
