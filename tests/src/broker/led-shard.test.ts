import { beforeEach, describe, expect, it } from 'vitest';
import type { WatchedAssignment } from '../../../src/broker-protocol.ts';
import type { LeadMessage } from '../../../src/broker/copy-protocol.ts';
import { LedShard } from '../../../src/broker/led-shard.ts';
import { RecordStore, type ShardLog } from '../../../src/broker/record-store.ts';
import { BrokerWorld } from '../../support/broker-world.ts';

const ROW: WatchedAssignment = {
  shard: 'stream:orders/0',
  leader: 'b1',
  replicas: ['b1', 'b2', 'b3'],
  inSync: ['b1', 'b2'],
  generation: 5,
  epoch: 5,
  state: 'active',
  failedMoves: 0,
  move: null,
  resourceRevision: 1,
};

const HAND_OVER = {
  role: 'leader',
  from: 'b1',
  to: 'b3',
  step: 'fenced',
  reason: 'balance',
  copied: true,
  drops: null,
  startedAtMs: 0,
  progressAtMs: 0,
} as const;

describe('a shard as its leader keeps it', () => {
  let w: BrokerWorld;
  let log: ShardLog;
  let sent: LeadMessage[];
  const send = (message: LeadMessage): void => void sent.push(message);
  const payload = (text: string) => Buffer.from(text);

  beforeEach(async () => {
    w = new BrokerWorld({});
    sent = [];
    const process = w.process('b1');
    const disk = w.disk('b1').diskOf(process);
    const store = await w.settled(disk.openStore('records', { createIfMissing: true }));
    log = await w.settled((await w.settled(RecordStore.open(store))).openShard(ROW.shard, 1));
  });

  function lead(row: WatchedAssignment = ROW): LedShard {
    const { clock } = w.process('b1');
    return new LedShard({
      self: 'b1',
      row,
      log,
      clock,
      copyRate: 1_000,
      onChange: () => {},
      onFailure: (error) => w.world.fail(error as Error),
    });
  }

  /** Whether a promise has settled by now. */
  async function isDone(promise: Promise<unknown>): Promise<boolean> {
    let done = false;
    promise.then(
      () => (done = true),
      () => (done = true),
    );
    await w.run(50);
    return done;
  }

  it('acknowledges once every in-sync copy has it, whatever the others have', async () => {
    const led = lead();
    led.follow('b2', 1, 0, 0, send);
    const append = led.append([payload('a')]);
    expect(await isDone(append)).toBe(false);
    led.follow('b3', 1, 1, 5, send);
    expect(await isDone(append)).toBe(false);
    led.acknowledge('b2', 1, 1);
    expect(await w.settled(append)).toBe(0);
    expect(led.acknowledged).toBe(1);
  });

  it('believes no copy that acknowledges records which do not exist yet', async () => {
    const led = lead();
    led.follow('b2', 1, 0, 0, send);
    led.acknowledge('b2', 1, 5);
    const append = led.append([payload('a')]);
    expect(await isDone(append)).toBe(false);
    led.acknowledge('b2', 1, 1);
    expect(await w.settled(append)).toBe(0);
  });

  it('goes on sending to a copy that dialed again before the end of its old connection was noticed', async () => {
    const led = lead();
    const onNew: LeadMessage[] = [];
    led.follow('b2', 1, 0, 0, send);
    led.follow('b2', 1, 0, 0, (message) => void onNew.push(message));
    led.detach('b2', send);
    led.append([payload('a')]).catch(() => {});
    await w.run(50);
    expect(onNew).toMatchObject([{ type: 'records', from: 0 }]);
  });

  it('waits for a copy from the moment it is proposed, until a newer row shows what became of it', async () => {
    const led = lead();
    led.follow('b2', 1, 0, 0, send);
    led.follow('b3', 1, 0, 0, send);
    expect(led.change()).toMatchObject({ generation: 5, inSync: ['b1', 'b2', 'b3'] });
    const append = led.append([payload('a')]);
    await w.run(50);
    led.acknowledge('b2', 1, 1);
    expect(await isDone(append)).toBe(false);
    led.update({ ...ROW, generation: 6 });
    expect(await isDone(append)).toBe(true);
  });

  it('a copy taken out is waited for until the row shows it gone', async () => {
    const led = lead({ ...ROW, inSync: ['b1', 'b2', 'b3'] });
    led.follow('b2', 1, 0, 0, send);
    led.follow('b3', 1, 0, 0, send);
    const append = led.append([payload('a')]);
    await w.run(50);
    led.acknowledge('b2', 1, 1);
    expect(led.change()).toBeNull();
    await w.run(10_100);
    expect(led.change()).toMatchObject({ inSync: ['b1', 'b2'] });
    expect(await isDone(append)).toBe(false);
    led.update({ ...ROW, generation: 6 });
    expect(await isDone(append)).toBe(true);
  });

  it('fenced it takes nothing, and is drained once every in-sync copy and the destination hold it all', async () => {
    const led = lead();
    led.follow('b2', 1, 0, 0, send);
    const append = led.append([payload('a')]);
    await w.run(50);
    led.update({ ...ROW, state: 'draining', generation: 6, move: HAND_OVER });
    await expect(w.settled(led.append([payload('b')]))).rejects.toMatchObject({ code: 'unavailable' });
    led.follow('b3', 1, 1, 5, send);
    const report = led.change();
    expect(report).toMatchObject({ inSync: ['b1', 'b2', 'b3'] });
    expect(report).not.toHaveProperty('drained');
    led.acknowledge('b2', 1, 1);
    expect(led.change()).toBeNull();
    if (report !== null) led.answered(report, false);
    expect(led.change()).toMatchObject({ generation: 6, inSync: ['b1', 'b2', 'b3'], drained: true });
    expect(await w.settled(append)).toBe(0);
  });

  it('fenced it is not drained while an append that it took before is still being written', async () => {
    const led = lead({ ...ROW, inSync: ['b1', 'b2', 'b3'] });
    for (const id of ['b2', 'b3']) led.follow(id, 1, 0, 0, send);
    const append = led.append([payload('a')]);
    led.update({ ...ROW, inSync: ['b1', 'b2', 'b3'], state: 'draining', generation: 6, move: HAND_OVER });
    // The copies hold everything that the log holds by now, and not what is on its way into it.
    expect(led.change()).toBeNull();
    await w.run(50);
    for (const id of ['b2', 'b3']) led.acknowledge(id, 1, 1);
    expect(led.change()).toMatchObject({ drained: true, leaderOffset: 1 });
    expect(await w.settled(append)).toBe(0);
  });

  it('counts a copy out that never reached it in this epoch', async () => {
    await w.settled(log.append([{ epoch: 3, payload: payload('of an epoch before') }]));
    const led = lead();
    await w.run(9_900);
    expect(led.change()).toBeNull();
    await w.run(200);
    expect(led.change()).toMatchObject({ generation: 5, inSync: ['b1'] });
  });

  it('keeps a copy in sync that lacked nothing for long, at the first append after that', async () => {
    const led = lead();
    led.follow('b2', 1, 0, 0, send);
    await w.run(60_000);
    const append = led.append([payload('a')]);
    await w.run(50);
    expect(led.change()).toBeNull();
    led.acknowledge('b2', 1, 1);
    expect(led.change()).toBeNull();
    expect(await w.settled(append)).toBe(0);
  });

  it('acknowledges without a copy taken out as soon as the report was accepted, and reports on from there', async () => {
    const led = lead({ ...ROW, inSync: ['b1', 'b2', 'b3'] });
    for (const id of ['b2', 'b3']) led.follow(id, 1, 0, 0, send);
    const append = led.append([payload('a')]);
    await w.run(50);
    led.acknowledge('b2', 1, 1);
    await w.run(10_100);
    const report = led.change();
    expect(report).toMatchObject({ inSync: ['b1', 'b2'] });
    if (report !== null) led.answered(report, true);
    expect(await isDone(append)).toBe(true);
    led.acknowledge('b3', 1, 1);
    expect(led.change()).toMatchObject({ generation: 6, inSync: ['b1', 'b2', 'b3'] });
  });

  it('cuts a copy back to where the logs part, by the epochs of their records', async () => {
    await w.settled(log.append([1, 1, 3, 5].map((epoch) => ({ epoch, payload: payload('x') }))));
    const led = lead();
    const parting = (end: number, lastEpoch: number): number | 'same' => {
      sent = [];
      led.follow('b2', 1, end, lastEpoch, send);
      const [first] = sent;
      return first?.type === 'truncate' ? first.to : 'same';
    };
    expect(parting(0, 0)).toBe('same');
    expect(parting(4, 5)).toBe('same');
    expect(parting(2, 1)).toBe('same');
    // Longer than ours: to our end; of an epoch that ours lacks: to where ours goes on past it.
    expect(parting(6, 5)).toBe(4);
    expect(parting(4, 4)).toBe(3);
    expect(parting(3, 2)).toBe(2);
    expect(parting(9, 2)).toBe(2);
    // The same epoch at the wrong place: one step at a time.
    expect(parting(3, 1)).toBe(2);
  });

  it('shows nothing after a change of leader until the in-sync copies hold what was there', async () => {
    await w.settled(log.append([{ epoch: 3, payload: payload('acknowledged by another') }]));
    const led = lead();
    expect(() => led.readableEnd).toThrow(/has just changed its leader/);
    led.follow('b2', 1, 0, 0, send);
    expect(() => led.readableEnd).toThrow(/has just changed its leader/);
    led.acknowledge('b2', 1, 1);
    expect(led.readableEnd).toBe(1);
  });

  it('what an older registration of a copy held counts for nothing', async () => {
    const led = lead();
    led.follow('b3', 2, 0, 0, send);
    led.forget('b3', 3);
    expect(led.change()).toBeNull();
    led.follow('b3', 3, 0, 0, send);
    led.follow('b3', 2, 0, 0, send);
    expect(sent.at(-1)).toMatchObject({ type: 'refused' });
    expect(led.change()).toMatchObject({ inSync: ['b1', 'b2', 'b3'] });
  });

  it('an append under way when the epoch ends has an unknown outcome', async () => {
    const led = lead();
    const append = led.append([payload('a')]);
    append.catch(() => {});
    await w.run(50);
    led.close();
    await expect(w.settled(append)).rejects.toMatchObject({ code: 'outcome_unknown' });
  });

  describe('opened with less than a copy holds', () => {
    const records = (epoch: number, ...texts: string[]) =>
      texts.map((text) => ({ epoch, payload: payload(text) }));

    it('stands back for a copy in sync: cuts nothing, serves nothing, reports itself out', async () => {
      await w.settled(log.append(records(4, 'a')));
      const led = lead({ ...ROW, state: 'assigning' });
      const append = led.append([payload('mine')]);
      append.catch(() => {});
      await w.run(10);
      led.follow('b2', 1, 3, 4, send);
      expect(sent).toEqual([{ type: 'refused', shard: ROW.shard, epoch: 5 }]);
      expect(led.isBehind).toBe(true);
      await expect(append).rejects.toMatchObject({ code: 'outcome_unknown' });
      await expect(led.append([payload('x')])).rejects.toMatchObject({ code: 'unavailable' });
      expect(() => led.readableEnd).toThrow(/another copy holds more/);
      expect(led.change()).toMatchObject({ generation: 5, inSync: ['b2'] });
    });

    it('cuts one back that is not in sync, and one in sync whose log is longer but of an older epoch', async () => {
      await w.settled(log.append(records(4, 'a')));
      const led = lead();
      led.follow('b3', 1, 3, 4, send);
      led.follow('b2', 1, 3, 3, send);
      expect(sent.map(({ type }) => type)).toEqual(['truncate', 'truncate']);
      expect(led.isBehind).toBe(false);
    });

    it('leads on past a copy in sync that has taken more from this very epoch', async () => {
      const led = lead();
      led.follow('b2', 1, 0, 0, send);
      const append = led.append([payload('a'), payload('b')]);
      await w.run(10);
      led.follow('b2', 1, 2, 5, send);
      expect(await w.settled(append)).toBe(0);
      expect(led.isBehind).toBe(false);
    });
  });
});
