import { beforeEach, describe, expect, it } from 'vitest';
import { openBrokerDirectory } from '../../../src/broker/data-directory.ts';
import { metaKey, recordKey } from '../../../src/broker/record-codec.ts';
import { RecordStore } from '../../../src/broker/record-store.ts';
import type { SimProcess } from '../../../src/sim/index.ts';
import { BrokerWorld } from '../../support/broker-world.ts';

const SHARD = 'stream:orders/0';
const records = (epoch: number, ...texts: string[]) =>
  texts.map((text) => ({ epoch, payload: Buffer.from(text) }));

describe('what a broker keeps on disk', () => {
  let w: BrokerWorld;
  let process: SimProcess;
  beforeEach(() => {
    w = new BrokerWorld({});
    process = w.process('b1');
  });

  const directory = (id = 'b1', clusterId = 'test') =>
    w.settled(
      openBrokerDirectory(w.disk('b1').diskOf(process), 'data', { random: process.random, clusterId, id }),
    );

  /** The process is killed and another opens what it left. */
  async function restart(): Promise<Awaited<ReturnType<typeof directory>>> {
    process.kill();
    w.disk('b1').settle(true);
    process = w.process('b1');
    return directory();
  }

  it('a power cut loses nothing that was acknowledged, and the store keeps its id', async () => {
    const first = await directory();
    const log = await w.settled(first.records.openShard(SHARD, 7));
    await w.settled(log.append(records(1, 'a', 'b')));
    await w.settled(log.append(records(4, 'c')));
    const again = await restart();
    expect(again.identity.storeId).toBe(first.identity.storeId);
    const kept = again.records.get(SHARD);
    expect(kept?.end).toBe(3);
    expect(kept?.epochBefore(3)).toBe(4);
    expect(kept?.endOfEpoch(1)).toBe(2);
    const read = await w.settled(kept?.read(0, 10) ?? Promise.resolve([]));
    expect(read.map(({ epoch, payload }) => [epoch, Buffer.from(payload).toString()])).toEqual([
      [1, 'a'],
      [1, 'b'],
      [4, 'c'],
    ]);
  });

  it('records that belong elsewhere by their turn are not written, though they fitted when they came', async () => {
    const log = await w.settled((await directory()).records.openShard(SHARD, 7));
    // The same record sent by its leader at two epochs, the second while the first is on its way to the disk.
    const [first, again] = await w.settled(
      Promise.all([log.appendAt(0, records(1, 'a')), log.appendAt(0, records(1, 'a'))]),
    );
    expect([first, again]).toEqual([1, null]);
    expect(await w.settled(log.appendAt(1, records(2, 'b')))).toBe(2);
    expect((await w.settled(log.read(0, 10))).length).toBe(2);
  });

  it('what was cut off or dropped stays so', async () => {
    const first = await directory();
    const log = await w.settled(first.records.openShard(SHARD, 7));
    const other = await w.settled(first.records.openShard('stream:orders/1', 7));
    await w.settled(log.append(records(1, 'a', 'b', 'c')));
    await w.settled(other.append(records(1, 'x')));
    await w.settled(log.truncate(1));
    await w.settled(log.append(records(2, 'd')));
    await w.settled(first.records.removeShard('stream:orders/1'));
    await expect(w.settled(other.append(records(1, 'y')))).rejects.toThrow(/has been dropped/);
    const again = await restart();
    expect(again.records.shards).toEqual([SHARD]);
    const read = await w.settled(again.records.get(SHARD)?.read(0, 10) ?? Promise.resolve([]));
    expect(read.map(({ payload }) => Buffer.from(payload).toString())).toEqual(['a', 'd']);
  });

  it('a log cut back to where an epoch begins takes records of a lower one next', async () => {
    const log = await w.settled((await directory()).records.openShard(SHARD, 7));
    await w.settled(log.append(records(1, 'a')));
    await w.settled(log.append(records(3, 'unacknowledged')));
    await w.settled(log.truncate(1));
    expect(await w.settled(log.append(records(2, 'b')))).toBe(2);
    const kept = (await restart()).records.get(SHARD);
    expect([kept?.epochBefore(1), kept?.epochBefore(2), kept?.endOfEpoch(1)]).toEqual([1, 2, 1]);
    const read = await w.settled(kept?.read(0, 10) ?? Promise.resolve([]));
    expect(read.map(({ epoch, payload }) => [epoch, Buffer.from(payload).toString()])).toEqual([
      [1, 'a'],
      [2, 'b'],
    ]);
  });

  it('the first write that fails is the last: whatever waits, or comes later, is rejected and not written', async () => {
    const { records: store } = await directory();
    const failures: string[] = [];
    store.onFailure = (error) => failures.push(error.message);
    const log = await w.settled(store.openShard(SHARD, 7));
    const other = await w.settled(store.openShard('stream:orders/1', 7));
    await w.settled(log.append(records(1, 'a')));
    w.disk('b1').failNextWrite();
    const failing = log.append(records(1, 'b'));
    failing.catch(() => {});
    await w.run(0.01);
    const waiting = other.append(records(1, 'x'));
    waiting.catch(() => {});
    await expect(w.settled(failing)).rejects.toThrow(/input\/output error/);
    await expect(w.settled(waiting)).rejects.toThrow(/input\/output error/);
    await expect(w.settled(log.append(records(1, 'c')))).rejects.toThrow(/input\/output error/);
    await expect(w.settled(log.truncate(0))).rejects.toThrow(/input\/output error/);
    expect(failures).toEqual(['input/output error (simulated)']);
    const again = (await restart()).records;
    expect(again.get('stream:orders/1')).toBeUndefined();
    // The failed write may have reached the disk all the same.
    expect(again.get(SHARD)?.end).toBeLessThanOrEqual(2);
  });

  it.each(['in the middle', 'at the end'])(
    'a record that is missing %s is noticed by who reads',
    async (where) => {
      const disk = w.disk('b1').diskOf(process);
      const rows = await w.settled(disk.openStore('records', { createIfMissing: true }));
      const store = await w.settled(RecordStore.open(rows));
      const failures: string[] = [];
      store.onFailure = (error) => failures.push(error.message);
      const log = await w.settled(store.openShard(SHARD, 7));
      await w.settled(log.append(records(1, 'a', 'b', 'c')));
      const key = recordKey(1, where === 'at the end' ? 2 : 1);
      await w.settled(rows.write([{ type: 'delete', key }]));
      await expect(w.settled(log.read(0, 10))).rejects.toMatchObject({ code: 'corrupt' });
      expect(failures).toHaveLength(1);
      await expect(w.settled(log.append(records(1, 'd')))).rejects.toMatchObject({ code: 'corrupt' });
    },
  );

  it('records of an earlier creation of the resource are thrown away', async () => {
    const { records: store } = await directory();
    await w.settled((await w.settled(store.openShard(SHARD, 7))).append(records(1, 'old')));
    expect((await w.settled(store.openShard(SHARD, 9))).end).toBe(0);
  });

  it('a flipped bit is noticed: at opening or at reading, never served', async () => {
    const first = await directory();
    const log = await w.settled(first.records.openShard(SHARD, 7));
    await w.settled(log.append(records(1, 'a', 'b', 'c')));
    process.kill();
    w.disk('b1').settle(false);
    expect(w.disk('b1').flipBit()).toBe(true);
    process = w.process('b1');
    const look = async (): Promise<void> => {
      const { records: store } = await directory();
      await w.settled(store.get(SHARD)?.read(0, 10) ?? Promise.resolve([]));
    };
    await expect(look()).rejects.toMatchObject({ code: 'corrupt' });
  });

  it("refuses a directory in use, another broker's, and another cluster's", async () => {
    const first = await directory();
    await expect(directory()).rejects.toMatchObject({ code: 'directory_in_use' });
    await w.settled(first.close());
    await expect(directory('b2')).rejects.toMatchObject({
      code: 'wrong_directory',
      message: expect.stringContaining('belongs to broker b1 of cluster test'),
    });
    await expect(directory('b1', 'else')).rejects.toMatchObject({ code: 'wrong_directory' });
    expect((await directory()).identity.storeId).toBe(first.identity.storeId);
  });

  it('appends of one turn share a synced write', async () => {
    const store = await w.settled(
      w.disk('b1').diskOf(process).openStore('records', { createIfMissing: true }),
    );
    let writes = 0;
    const counted = {
      ...store,
      range: store.range.bind(store),
      get: store.get.bind(store),
      close: store.close.bind(store),
    };
    const opened = await w.settled(
      RecordStore.open({
        ...counted,
        write(operations) {
          writes++;
          return store.write(operations);
        },
      }),
    );
    const logs = await Promise.all([0, 1, 2, 3].map((i) => opened.openShard(`stream:orders/${i}`, 1)));
    await w.settled(Promise.all(logs.map((log) => log.append(records(1, 'a')))));
    expect(writes).toBeLessThanOrEqual(2);
  });

  describe('damage of the store is noticed when it is opened', () => {
    const rows = () =>
      w.settled(w.disk('b1').diskOf(process).openStore('data/records', { createIfMissing: true }));

    /** Two shards of two writes each, then the process is killed. */
    async function fill(): Promise<void> {
      const { records: store } = await directory();
      for (const shard of [SHARD, 'stream:orders/1']) {
        const log = await w.settled(store.openShard(shard, 7));
        await w.settled(log.append(records(1, 'a', 'b')));
        await w.settled(log.append(records(1, 'c')));
      }
      await w.run(10);
      process.kill();
      w.disk('b1').settle(false);
      process = w.process('b1');
    }

    it('the last write is gone, and the store says nothing of it', async () => {
      await fill();
      const old = w.disk('b1').copy();
      const log = (await directory()).records.get(SHARD);
      await w.settled(log?.append(records(1, 'lost')) ?? Promise.resolve(0));
      await w.run(10);
      const mark = await w.settled(w.disk('b1').diskOf(process).readFile('data/mark'));
      process.kill();
      w.disk('b1').restore(old);
      process = w.process('b1');
      await w.settled(
        w
          .disk('b1')
          .diskOf(process)
          .replaceFile('data/mark', mark ?? new Uint8Array()),
      );
      await expect(directory()).rejects.toMatchObject({
        code: 'corrupt',
        message: expect.stringMatching(/ends at write 4 and had reached 5/),
      });
    });

    it('a write in the middle is gone with the description of its shard, and later ones are there', async () => {
      const { records: store } = await directory();
      const log = await w.settled(store.openShard(SHARD, 7));
      const other = await w.settled(store.openShard('stream:orders/1', 7));
      await w.settled(log.append(records(1, 'a')));
      const raw = await rows();
      const before = await w.settled(raw.get(metaKey(1)));
      await w.settled(log.append(records(1, 'lost')));
      await w.settled(other.append(records(1, 'x')));
      process.kill();
      w.disk('b1').settle(false);
      process = w.process('b1');
      const damage = await rows();
      await w.settled(
        damage.write([
          { type: 'put', key: metaKey(1), value: before ?? new Uint8Array() },
          { type: 'delete', key: recordKey(1, 1) },
        ]),
      );
      await expect(directory()).rejects.toMatchObject({ code: 'corrupt' });
    });

    it.each([0, 1, 2])('record %j is missing', async (offset) => {
      await fill();
      await w.settled((await rows()).write([{ type: 'delete', key: recordKey(1, offset) }]));
      await expect(directory()).rejects.toMatchObject({
        code: 'corrupt',
        message: expect.stringMatching(/data directory data is damaged/),
      });
    });

    it('the mark cannot be read', async () => {
      await fill();
      const disk = w.disk('b1').diskOf(process);
      await w.settled(disk.replaceFile('data/mark', new Uint8Array(8192).fill(1)));
      await expect(directory()).rejects.toMatchObject({ code: 'corrupt' });
    });

    it('the whole store is gone', async () => {
      await fill();
      const disk = w.disk('b1').diskOf(process);
      const [identity, mark] = await w.settled(
        Promise.all([disk.readFile('data/broker.json'), disk.readFile('data/mark')]),
      );
      w.disk('b1').wipe();
      await w.settled(disk.replaceFile('data/broker.json', identity ?? new Uint8Array()));
      await w.settled(disk.replaceFile('data/mark', mark ?? new Uint8Array()));
      await expect(directory()).rejects.toMatchObject({ code: 'corrupt' });
    });
  });
});
