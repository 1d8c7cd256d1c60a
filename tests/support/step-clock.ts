import type { Clock, Timer } from '../../raft/index.ts';

/** A clock that stands still and whose deferred callbacks the test runs, one turn after the other. */
export class StepClock implements Clock {
  #turn: (() => void)[] = [];

  now(): number {
    return 0;
  }

  wallNow(): number {
    return 0;
  }

  setTimeout(_callback: () => void, _delayMs: number): Timer {
    return {};
  }

  clearTimeout(): void {}

  defer(callback: () => void): void {
    this.#turn.push(callback);
  }

  get isIdle(): boolean {
    return this.#turn.length === 0;
  }

  /** Runs what was deferred until now, and what promises it settles; not what that defers in turn. */
  async turn(): Promise<void> {
    const callbacks = this.#turn;
    this.#turn = [];
    for (const callback of callbacks) callback();
    for (let i = 0; i < 20; i++) await Promise.resolve();
  }

  /** Runs turns until nothing is deferred; answers how many. */
  async run(): Promise<number> {
    let turns = 0;
    for (let i = 0; i < 20; i++) await Promise.resolve();
    for (; !this.isIdle; turns++) await this.turn();
    return turns;
  }
}
