import type { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { plan, type Step } from '../../../placement/index.ts';
import { InlinePlanner, type OpenPlan, type WorkerPlanner } from '../../../src/control/index.ts';
import { STEPS_PER_MESSAGE, type FromPlanner } from '../../../src/control/planner-messages.ts';
import { spawnPlanner } from '../../../src/control/planner-thread.ts';
import { streamOf } from '../../support/placed.ts';
import { brokersOf, Fixture, input, plain, wholePlan, workerFor, type Whole } from './planner-fixture.ts';

/** The one slice that is used, and the one that is fetched meanwhile. */
const MOST_STEPS_HELD = 2 * STEPS_PER_MESSAGE;
const SHARDS = 1_900;

/** Slices of an open plan, taken one by one. */
class Reader {
  readonly #slices: AsyncIterator<readonly Step[]>;
  readonly read: Step[] = [];

  constructor({ slices }: OpenPlan) {
    this.#slices = slices[Symbol.asyncIterator]();
  }

  /** Whether there was another. */
  async next(): Promise<boolean> {
    const { done, value } = await this.#slices.next();
    if (done === true) return false;
    this.read.push(...value);
    return true;
  }

  async rest(): Promise<readonly Step[]> {
    while (await this.next());
    return this.read;
  }
}

describe('a plan that is read slice by slice from the thread that made it', () => {
  let f: Fixture;
  let worker: WorkerPlanner;
  let expected: Whole;
  const threads: Worker[] = [];
  /** Steps that this thread has been sent. */
  let received: number;

  beforeEach(async () => {
    f = new Fixture();
    f.importAll(brokersOf(3), 10, () => ['b00', 'b01']);
    f.write({ type: 'createResource', resource: streamOf('new', SHARDS, 2) });
    expected = await wholePlan(new InlinePlanner(f.state, plan));
    expect(expected.steps.length).toBeGreaterThanOrEqual(SHARDS);
    received = 0;
    worker = workerFor(f, {
      spawn: () => {
        const thread = spawnPlanner();
        thread.on('message', (message: FromPlanner) => {
          const { rows } = Object(message.type === 'answered' && message.answer) as { rows?: object[] };
          if (rows?.some((row) => 'step' in row) === true) received += rows.length;
        });
        threads.push(thread);
        return thread;
      },
    });
    worker.start();
  });

  afterEach(() => worker.close());

  /** Whatever the thread was asked for before has come once it has answered this. */
  const answered = (): Promise<unknown> => worker.ask('explain', 'stream:big/0', input);

  it('is never held here but for a slice in use and one ahead of it', async () => {
    const reader = new Reader(await worker.plan(input));
    await answered();
    expect(received).toBe(0);
    let used = 0;
    while (await reader.next()) {
      await answered();
      await answered();
      expect(received - used).toBeLessThanOrEqual(MOST_STEPS_HELD);
      used = reader.read.length;
    }
    expect(reader.read).toEqual(expected.steps);
    expect(received).toBe(expected.steps.length);
  });

  it('stays as it was made, whatever becomes of the state meanwhile', async () => {
    const reader = new Reader(await worker.plan(input));
    await reader.next();
    f.write({ type: 'setDrain', broker: 'b00', drain: true });
    f.write({ type: 'deleteResource', kind: 'stream', name: 'big', expectedRevision: null });
    f.machine.restore(f.machine.snapshot(), f.state.appliedIndex);
    // Not before the thread has the state of now.
    const inline = new InlinePlanner(f.state, plan);
    expect(await worker.ask('explain', 'stream:big/0', input)).toBeNull();
    expect(await reader.rest()).toEqual(expected.steps);
    expect(await wholePlan(worker)).toEqual(await wholePlan(inline));
  });

  it('does not stand in the way of a whole plan, nor of a question', async () => {
    const reader = new Reader(await worker.plan(input));
    await reader.next();
    const inline = new InlinePlanner(f.state, plan);
    f.write({ type: 'setDrain', broker: 'b00', drain: true });
    const now = await worker.fullPlan(input);
    expect(plain(now)).toEqual(plain(await inline.fullPlan(input)));
    expect(now.steps).not.toEqual(expected.steps);
    const question = ['explain', 'stream:new/7', input] as const;
    expect(await worker.ask(...question)).toEqual(await inline.ask(...question));
    expect(await reader.rest()).toEqual(expected.steps);
  });

  it('ends between two slices with the leadership; the next begins anew', async () => {
    const reader = new Reader(await worker.plan(input));
    await reader.next();
    worker.stop();
    await expect(reader.rest()).rejects.toMatchObject({ code: 'no_leader' });
    expect(reader.read.length).toBeLessThanOrEqual(MOST_STEPS_HELD);
    worker.start();
    expect(await wholePlan(worker)).toEqual(expected);
  });

  it('ends between two slices with its thread; another makes the next', async () => {
    const reader = new Reader(await worker.plan(input));
    await reader.next();
    await threads.at(-1)?.terminate();
    await expect(reader.rest()).rejects.toThrow(/thread ended/);
    expect(reader.read.length).toBeLessThanOrEqual(MOST_STEPS_HELD);
    expect(await wholePlan(worker)).toEqual(expected);
  });

  it('ends where the next is asked for', async () => {
    const reader = new Reader(await worker.plan(input));
    await reader.next();
    expect(await wholePlan(worker)).toEqual(expected);
    await expect(reader.rest()).rejects.toThrow(/another plan was made/);
  });
});
