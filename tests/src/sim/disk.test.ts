import { describe, expect, it } from 'vitest';
import type { KeyValueStore } from '../../../src/disk.ts';
import { SimDisk, SimProcess, SimWorld } from '../../../src/sim/index.ts';

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));
const put = (key: string, value: string): { type: 'put'; key: Uint8Array; value: Uint8Array } => ({
  type: 'put',
  key: bytes(key),
  value: bytes(value),
});

class Machine {
  readonly world: SimWorld;
  readonly disk: SimDisk;
  process: SimProcess;
  #life = 1;

  constructor(seed: number) {
    this.world = new SimWorld(seed);
    this.disk = new SimDisk(this.world, 'n1');
    this.process = this.boot();
  }

  boot(): SimProcess {
    this.process = new SimProcess(this.world, 'n1', { life: this.#life++, driftPart: 0, wallOffsetMs: 0 });
    return this.process;
  }

  /** Waits in virtual time. */
  async done<T>(promise: Promise<T>): Promise<T> {
    let outcome: { value: T } | { error: unknown } | undefined;
    promise.then(
      (value) => (outcome = { value }),
      (error: unknown) => (outcome = { error }),
    );
    await this.world.run({ untilMs: this.world.nowMs + 10_000, until: () => outcome !== undefined });
    if (outcome === undefined) throw new Error('never settled');
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  }

  open(): Promise<KeyValueStore> {
    return this.done(this.disk.diskOf(this.process).openStore('data/log', { createIfMissing: true }));
  }

  async crash(powerCut: boolean): Promise<KeyValueStore> {
    this.process.kill();
    this.disk.settle(powerCut);
    this.boot();
    return this.open();
  }

  async rows(store: KeyValueStore): Promise<string[]> {
    const rows = await this.done(store.range({ gte: bytes(''), lt: bytes('~'), limit: 1_000 }));
    return rows.map(([key, value]) => `${Buffer.from(key).toString()}=${Buffer.from(value).toString()}`);
  }
}

describe('SimDisk', () => {
  it('keeps synced writes over a power cut, in key order, with deletes', async () => {
    const machine = new Machine(1);
    const store = await machine.open();
    await machine.done(store.write([put('b', '1'), put('a', '2'), put('c', '3')]));
    await machine.done(store.write([{ type: 'delete', key: bytes('b') }]));
    const again = await machine.crash(true);
    expect(await machine.rows(again)).toEqual(['a=2', 'c=3']);
    expect(await machine.done(again.get(bytes('b')))).toBeNull();
    const limited = await machine.done(again.range({ gte: bytes('a'), lt: bytes('c'), limit: 9 }));
    expect(limited.length).toBe(1);
  });

  it('loses unsynced batches from the end, each whole or not at all', async () => {
    const found = new Set<string>();
    for (let seed = 1; seed <= 60; seed++) {
      const machine = new Machine(seed);
      const store = await machine.open();
      for (const n of [1, 2, 3]) void store.write([put(`${n}a`, 'x'), put(`${n}b`, 'y')]);
      const again = await machine.crash(true);
      found.add((await machine.rows(again)).join(' '));
    }
    expect([...found].sort()).toEqual([
      '',
      '1a=x 1b=y',
      '1a=x 1b=y 2a=x 2b=y',
      '1a=x 1b=y 2a=x 2b=y 3a=x 3b=y',
    ]);
  });

  it('a drive that lies loses acknowledged writes in a power cut, not when a process is killed', async () => {
    let lost = 0;
    for (let seed = 1; seed <= 40; seed++) {
      for (const powerCut of [true, false]) {
        const machine = new Machine(seed);
        machine.disk.faults.lies = true;
        const store = await machine.open();
        await machine.done(store.write([put('k', 'v')]));
        const rows = await machine.rows(await machine.crash(powerCut));
        if (powerCut) lost += rows.length === 0 ? 1 : 0;
        else expect(rows).toEqual(['k=v']);
      }
    }
    expect(lost).toBeGreaterThan(5);
  });

  it('a failed write rejects and a full disk says so', async () => {
    const machine = new Machine(1);
    const store = await machine.open();
    machine.disk.failNextWrite();
    await expect(machine.done(store.write([put('k', 'v')]))).rejects.toThrow('input/output error');
    machine.disk.faults.full = true;
    await expect(machine.done(store.write([put('k', 'v')]))).rejects.toThrow('no space left');
  });

  it('a store in which a write failed refuses what follows or loses it, as LevelDB does', async () => {
    const found = new Set<string>();
    for (let seed = 1; seed <= 20; seed++) {
      const machine = new Machine(seed);
      const store = await machine.open();
      await machine.done(store.write([put('a', '1')]));
      machine.disk.failNextWrite();
      await expect(machine.done(store.write([put('b', '2')]))).rejects.toThrow('input/output error');
      const later = machine.done(store.write([put('c', '3')])).then(
        () => 'taken',
        () => 'refused',
      );
      const rows = async (): Promise<string> => (await machine.rows(await machine.crash(false))).join(' ');
      found.add(`${await later}: ${await rows()}`);
    }
    expect([...found].sort()).toEqual(['refused: a=1', 'refused: a=1 b=2', 'taken: a=1']);
  });

  it('loses the newest writes of a store, each whole', async () => {
    const machine = new Machine(1);
    let store = await machine.open();
    await machine.done(store.write([put('a', '1'), put('b', '1')]));
    await machine.done(store.write([put('b', '2'), put('c', '2')]));
    await machine.done(store.write([{ type: 'delete', key: bytes('a') }]));
    await machine.crash(true);
    expect(machine.disk.loseTail(2)).toBe(true);
    store = await machine.open();
    expect(await machine.rows(store)).toEqual(['a=1', 'b=1']);
    expect(machine.disk.loseTail(1)).toBe(false);
  });

  it('a slow read takes its time', async () => {
    const machine = new Machine(1);
    const store = await machine.open();
    expect(machine.disk.isWell).toBe(true);
    machine.disk.faults.readMaxMs = 2_000;
    const begin = machine.world.nowMs;
    for (let n = 0; n < 10; n++) await machine.done(store.get(bytes('a')));
    expect(machine.world.nowMs - begin).toBeGreaterThan(2_000);
    expect(machine.disk.isWell).toBe(false);
  });

  it('a slow sync takes its time and writes queue behind it', async () => {
    const machine = new Machine(1);
    const store = await machine.open();
    Object.assign(machine.disk.faults, { syncMinMs: 100, syncMaxMs: 100.001 });
    const begin = machine.world.nowMs;
    await machine.done(Promise.all([store.write([put('a', '')]), store.write([put('b', '')])]));
    expect(machine.world.nowMs - begin).toBeCloseTo(200, 1);
  });

  it('files are old or new, never half, and listed by directory', async () => {
    const found = new Set<string>();
    for (let seed = 1; seed <= 30; seed++) {
      const machine = new Machine(seed);
      let disk = machine.disk.diskOf(machine.process);
      await machine.done(disk.makeDirectory('data/marks'));
      await machine.done(disk.replaceFile('data/marks/mark', bytes('old')));
      void disk.replaceFile('data/marks/mark', bytes('new'));
      await machine.crash(true);
      disk = machine.disk.diskOf(machine.process);
      expect(await machine.done(disk.list('data'))).toEqual(['log', 'marks']);
      expect(await machine.done(disk.list('data/marks'))).toEqual(['mark']);
      const data = await machine.done(disk.readFile('data/marks/mark'));
      found.add(Buffer.from(data ?? []).toString());
    }
    expect(found).toEqual(new Set(['new', 'old']));
  });

  it('a fixed file keeps unsynced writes when killed and may lose or tear them in a power cut', async () => {
    const found = { kill: new Set<string>(), power: new Set<string>() };
    for (let seed = 1; seed <= 60; seed++) {
      for (const powerCut of [true, false]) {
        const machine = new Machine(seed);
        const file = await machine.done(machine.disk.diskOf(machine.process).openFixedFile('data/mark', 4));
        await machine.done(file.writeAt(0, bytes('aaaa'), { sync: true }));
        await machine.done(file.writeAt(0, bytes('bbbb'), { sync: false }));
        await machine.crash(powerCut);
        const again = await machine.done(machine.disk.diskOf(machine.process).openFixedFile('data/mark', 4));
        const text = Buffer.from(await machine.done(again.read())).toString();
        (powerCut ? found.power : found.kill).add(text);
      }
    }
    expect([...found.kill]).toEqual(['bbbb']);
    expect([...found.power].sort()).toEqual(['aaaa', 'baaa', 'bbaa', 'bbba', 'bbbb']);
  });

  it('a lock is exclusive while its process lives', async () => {
    const machine = new Machine(1);
    const first = machine.disk.diskOf(machine.process);
    await machine.done(first.lock('data/LOCK'));
    const other = machine.disk.diskOf(machine.boot());
    await expect(machine.done(other.lock('data/LOCK'))).rejects.toThrow('locked');
    const dead = new Machine(2);
    await dead.done(dead.disk.diskOf(dead.process).lock('data/LOCK'));
    await dead.crash(false);
    await dead.done(dead.disk.diskOf(dead.process).lock('data/LOCK'));
  });

  it('flips one bit, wipes, and puts an old copy back', async () => {
    const machine = new Machine(1);
    let store = await machine.open();
    await machine.done(store.write([put('k', 'v')]));
    const copy = machine.disk.copy();
    await machine.done(store.write([put('k', 'w'), put('l', 'x')]));
    expect(machine.disk.flipBit()).toBe(true);
    store = await machine.crash(false);
    expect(await machine.rows(store)).not.toEqual(['k=w', 'l=x']);
    machine.process.kill();
    machine.disk.restore(copy);
    machine.boot();
    expect(await machine.rows(await machine.open())).toEqual(['k=v']);
    machine.process.kill();
    machine.disk.wipe();
    machine.boot();
    expect(await machine.rows(await machine.open())).toEqual([]);
  });
});
