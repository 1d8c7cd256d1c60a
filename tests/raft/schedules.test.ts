import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CoreCluster } from './support/core-cluster.ts';

const IDS = ['a', 'b', 'c'];

const LIMITS = {
  maxAppendEntries: 3,
  maxInflightMessages: 2,
  maxWriteEntries: 4,
  maxApplyEntries: 4,
  trailingEntries: 2,
};

/** One schedule: faults at will, then calm. Keeps for each read what was committed anywhere when it was asked. */
class Schedule {
  readonly cluster: CoreCluster;
  readonly #asked = new Map<string, number>();
  #lastKey = 0;
  #proposed = 0;

  constructor(ids: readonly string[], seed: number) {
    this.cluster = new CoreCluster(ids, { limits: LIMITS, seed });
    for (const id of ids) this.cluster.of(id).held = true;
  }

  step(kind: number, at: number, pick: number): void {
    const { cluster } = this;
    const ids = [...cluster.members.keys()];
    const id = ids[at % ids.length]!;
    const member = cluster.of(id);
    const message = cluster.wire[pick % Math.max(1, Math.min(cluster.wire.length, 8))];
    if (kind < 34 && message !== undefined) this.#deliver(message, kind);
    else if (kind < 46) this.#flow(pick + 1);
    else if (kind < 58) cluster.finishWrite(id);
    else if (kind < 66) cluster.tick(id, 100);
    else if (kind < 70 && member.running) cluster.timeout(id);
    else if (kind < 80 && cluster.core(id).role === 'leader') cluster.propose(id, `p${this.#proposed++}`);
    else if (kind < 85) this.#read(id);
    else if (kind < 88) cluster.crash(id);
    else if (kind < 92 && !member.running) cluster.restart(id);
    else if (kind < 94) this.#compact(id);
    else if (kind < 96) cluster.act(id, (core) => core.transfer(ids[pick % ids.length]!));
    else if (kind < 98) cluster.act(id, (core) => core.peerDown(ids[pick % ids.length]!));
    else cluster.act(id, (core) => core.peerUp(ids[pick % ids.length]!, `boot${pick}`));
    this.check();
  }

  check(): void {
    for (const member of this.cluster.members.values()) {
      this.cluster.invariants.checkLog(member);
      for (const { key, index } of member.reads.splice(0)) this.#answered(key, index);
      for (const { match, next } of Object.values(member.core.progress())) {
        if (next < match + 1) throw new Error(`next ${next} after match ${match}`);
      }
    }
  }

  /** Everyone runs, all links work: the group must agree again. */
  calm(): void {
    const { cluster } = this;
    for (const [id, member] of cluster.members) {
      if (!member.running) cluster.restart(id);
      cluster.of(id).held = false;
      for (const peer of cluster.members.keys()) cluster.act(id, (core) => core.peerUp(peer, 'calm'));
      cluster.finishWrite(id);
    }
    cluster.run(12_000);
    this.check();
    const leader = [...cluster.members.values()].find(({ core }) => core.role === 'leader');
    if (leader === undefined)
      throw new Error(
        `nobody leads after 12 s of calm: ${[...cluster.members.keys()].map((id) => cluster.status(id)).join('; ')}`,
      );
    cluster.propose(leader.id, 'last');
    cluster.run(1_000);
    for (const { items } of cluster.members.values()) expect(items.at(-1)).toMatch(/ last$/);
    const whole = leader.items;
    for (const { items } of cluster.members.values()) expect(items).toEqual(whole);
  }

  #deliver(message: (typeof this.cluster.wire)[number], kind: number): void {
    const { cluster } = this;
    // Most are delivered once; some are lost, some come twice.
    if (kind >= 3) cluster.take((each) => each === message);
    if (kind >= 6 && cluster.of(message.to).running) cluster.deliver(message);
  }

  /** A while without faults. */
  #flow(rounds: number): void {
    const { cluster } = this;
    for (let round = 0; round < rounds; round++) {
      for (const message of cluster.wire.splice(0))
        if (cluster.of(message.to).running) cluster.deliver(message);
      for (const id of cluster.members.keys()) cluster.finishWrite(id);
    }
  }

  #read(id: string): void {
    const key = (this.#lastKey += 1);
    this.#asked.set(`${key}`, this.cluster.invariants.highestCommit);
    this.cluster.act(id, (core) => core.readIndex(key));
  }

  #answered(key: number, index: number | null): void {
    const floor = this.#asked.get(`${key}`) ?? 0;
    if (index !== null && index < floor)
      throw new Error(`read ${key} may see ${index}, ${floor} was committed before it`);
  }

  #compact(id: string): void {
    const { core, applied, running } = this.cluster.of(id);
    if (running && applied > core.log.snapshotIndex) this.cluster.compact(id);
  }
}

const steps = fc.array(fc.tuple(fc.nat(99), fc.nat(4), fc.nat(7)), {
  minLength: 50,
  maxLength: 400,
  size: 'max',
});

describe('random schedules', () => {
  test.each([
    ['three', IDS],
    ['five', [...IDS, 'd', 'e']],
  ])('nothing unsafe happens to %s members, and they agree once it is calm', (_name, ids) => {
    fc.assert(
      fc.property(fc.nat(), steps, (seed, actions) => {
        const schedule = new Schedule(ids, seed);
        for (const [kind, at, pick] of actions) schedule.step(kind, at, pick);
        schedule.calm();
      }),
      { numRuns: 150 },
    );
  });
});
