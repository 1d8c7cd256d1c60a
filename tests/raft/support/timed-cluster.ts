import { RaftCore } from '../../../raft/core.ts';
import { checkedLimits, type MemberId, type StoredState } from '../../../raft/index.ts';
import { afterWrite, EMPTY_DISK } from './disk.ts';
import { SeededRandom } from './random.ts';

const TICK_MS = 5;
const WRITE_MS = 2;

/** Cores in virtual time: messages take time, links are cut and sockets close. */
export class TimedCluster {
  readonly ids: readonly MemberId[];
  readonly cores = new Map<MemberId, RaftCore>();
  nowMs = 0;
  readonly #cut = new Set<string>();
  readonly #disks = new Map<MemberId, StoredState>();
  readonly #random: SeededRandom;
  readonly #oneWayMs: number;
  #queue: { readonly atMs: number; readonly run: () => void }[] = [];

  constructor(
    ids: readonly MemberId[],
    options: { readonly rttMs: number; readonly seed: number; readonly dead?: readonly MemberId[] },
  ) {
    const { dead = [], rttMs, seed } = options;
    this.ids = ids.filter((id) => !dead.includes(id));
    this.#oneWayMs = rttMs / 2;
    this.#random = new SeededRandom(seed);
    const configuration = { voters: ids, outgoing: [], learners: [], learnersNext: [] };
    for (const id of this.ids) {
      const random = new SeededRandom(this.#random.nextUint32());
      const core = new RaftCore({
        id,
        configuration,
        stored: EMPTY_DISK,
        limits: checkedLimits(),
        random,
      });
      this.cores.set(id, core);
      this.#disks.set(id, EMPTY_DISK);
      for (const peer of dead) core.peerDown(peer);
    }
    this.#tick();
  }

  get leader(): MemberId | null {
    return this.ids.find((id) => this.core(id).role === 'leader') ?? null;
  }

  core(id: MemberId): RaftCore {
    const core = this.cores.get(id);
    if (core === undefined) throw new Error(`no member ${id}`);
    return core;
  }

  act(id: MemberId, input: (core: RaftCore) => void): void {
    const core = this.core(id);
    input(core);
    const { messages, write } = core.takeWork();
    for (const message of messages) {
      const jitter = 0.95 + this.#random.nextUint32() / 2 ** 32 / 10;
      this.#later(this.#oneWayMs * jitter, () => {
        if (this.#cut.has(`${id}>${message.to}`) || !this.ids.includes(message.to)) return;
        this.act(message.to, (receiver) => receiver.step(message));
      });
    }
    if (write === null) return;
    this.#later(WRITE_MS, () => {
      this.#disks.set(id, afterWrite(this.#disks.get(id) ?? EMPTY_DISK, write.batch));
      this.act(id, (writer) => writer.written(write.id));
    });
  }

  /** Cuts what `from` says to `to`; its socket closes too, or stays open and silent. */
  cut(from: MemberId, to: MemberId, closes: boolean): void {
    this.#cut.add(`${from}>${to}`);
    if (closes) this.act(from, (core) => core.peerDown(to));
  }

  mend(from: MemberId, to: MemberId): void {
    this.#cut.delete(`${from}>${to}`);
    this.act(from, (core) => core.peerUp(to, `boot of ${to}`));
  }

  /** Runs for so long, or until it holds; returns the time that passed. */
  run(ms: number, holds: () => boolean = () => false): number {
    const beganMs = this.nowMs;
    while (!holds()) {
      const next = this.#queue[0];
      if (next === undefined || next.atMs > beganMs + ms) break;
      this.#queue.shift();
      this.nowMs = next.atMs;
      next.run();
    }
    return this.nowMs - beganMs;
  }

  #tick(): void {
    this.#later(TICK_MS, () => {
      for (const id of this.ids) this.act(id, (core) => core.tick(TICK_MS));
      this.#tick();
    });
  }

  #later(ms: number, run: () => void): void {
    const atMs = this.nowMs + ms;
    let at = this.#queue.length;
    while (at > 0 && (this.#queue[at - 1]?.atMs ?? 0) > atMs) at -= 1;
    this.#queue.splice(at, 0, { atMs, run });
  }
}
