import { beforeEach, describe, expect, it } from 'vitest';
import { plan, type Step } from '../../../placement/index.ts';
import type { PlacementRow, RowResult } from '../../../src/command/index.ts';
import { InlinePlanner, type OpenPlan, type PlanSummary } from '../../../src/control/index.ts';
import { newPassStats, Passes, type PassStats } from '../../../src/control/passes.ts';
import type { PlacementCommand } from '../../../src/control/placement-rows.ts';
import { SimProcess, SimWorld } from '../../../src/sim/index.ts';
import { QUIET } from '../../support/broker-world.ts';
import { streamOf } from '../../support/placed.ts';
import { brokersOf, Fixture, input, wholePlan } from './planner-fixture.ts';

const SHARDS = 1_900;
const SLICE = 250;
/** Four entries of 100 rows on their way, and what the fifth begins with. */
const MOST_STEPS_TAKEN = 4 * 100 + SLICE;

/** Passes over a plan that the test hands out, into a log that answers when the test says. */
class World {
  readonly #world = new SimWorld(1);
  readonly fixture = new Fixture();
  readonly stats: PassStats = newPassStats();
  readonly passes: Passes;
  readonly written: PlacementRow[] = [];
  /** Steps handed out so far. */
  taken = 0;
  plans = 0;
  /** What comes in the place of the slice from this step on; `null`: all of them come. */
  brokenAt: { readonly step: number; readonly wait: Promise<void> } | null = null;
  /** Called when a whole plan is made, before it is answered. */
  onPlanned = (): void => {};
  #unanswered: (() => void)[] = [];
  #isSlow = false;
  summary: PlanSummary | null = null;
  steps: readonly Step[] = [];

  constructor() {
    this.fixture.importAll(brokersOf(3), 10, () => ['b00', 'b01']);
    this.fixture.write({ type: 'createResource', resource: streamOf('new', SHARDS, 2) });
    const clock = new SimProcess(this.#world, 'n1', { life: 1, driftPart: 0, wallOffsetMs: 0 }).clock;
    const inline = new InlinePlanner(this.fixture.state, plan);
    this.passes = new Passes({
      clock,
      state: this.fixture.state,
      host: {
        start: () => {},
        stop: () => {},
        close: async () => {},
        fullPlan: async (from) => {
          const made = await inline.fullPlan(from);
          this.onPlanned();
          return made;
        },
        ask: (kind, subject, from) => inline.ask(kind, subject, from),
        plan: (from) => this.#plan(from),
      },
      log: QUIET,
      nowMs: () => input().nowMs,
      reports: () => input().reports,
      propose: (command) => this.#propose(command),
      stats: this.stats,
    });
  }

  async prepare(): Promise<void> {
    const { summary, steps } = await wholePlan(new InlinePlanner(this.fixture.state, plan));
    this.summary = summary;
    this.steps = steps;
  }

  run(ms: number): Promise<unknown> {
    return this.#world.run({ untilMs: this.#world.nowMs + ms });
  }

  /** From here on no entry is answered until `answer`. */
  slow(): void {
    this.#isSlow = true;
  }

  answer(): void {
    this.#isSlow = false;
    for (const answer of this.#unanswered.splice(0)) answer();
  }

  get unanswered(): number {
    return this.#unanswered.length;
  }

  async #plan(from: () => unknown): Promise<OpenPlan> {
    from();
    this.plans++;
    const { summary } = this;
    if (summary === null) throw new Error('not prepared');
    if (this.plans === 1) return { summary, slices: this.#slices() };
    return { summary: { ...summary, steps: 0 }, slices: this.#none() };
  }

  async *#slices(): AsyncGenerator<readonly Step[], void> {
    for (let at = 0; at < this.steps.length; at += SLICE) {
      if (at === this.brokenAt?.step) await this.brokenAt.wait;
      const slice = this.steps.slice(at, at + SLICE);
      this.taken += slice.length;
      yield slice;
    }
  }

  async *#none(): AsyncGenerator<readonly Step[], void> {}

  async #propose({ rows }: PlacementCommand): Promise<readonly RowResult[]> {
    this.written.push(...rows);
    if (this.#isSlow) await new Promise<void>((resolve) => this.#unanswered.push(resolve));
    return rows.map((): RowResult => ({ result: 'accepted', detail: null }) as unknown as RowResult);
  }
}

describe('a pass over a plan that comes in slices', () => {
  let w: World;
  const shards = (rows: readonly { readonly shard: string }[]) => rows.map(({ shard }) => shard);

  beforeEach(async () => {
    w = new World();
    await w.prepare();
    expect(w.steps.length).toBeGreaterThanOrEqual(SHARDS);
  });

  it('writes every step in order, and keeps of the plan a summary', async () => {
    w.passes.start();
    await w.run(50);
    expect(shards(w.written)).toEqual(shards(w.steps));
    expect(w.stats).toMatchObject({ failedPasses: 0 });
    expect(w.stats.accepted.get('place/new')).toBe(SHARDS);
  });

  it('takes no more of it than what is on its way into the log', async () => {
    w.slow();
    w.passes.start();
    await w.run(5_000);
    expect(w.unanswered).toBe(4);
    expect(w.taken).toBeGreaterThan(0);
    expect(w.taken).toBeLessThanOrEqual(MOST_STEPS_TAKEN);
    expect(w.passes.last?.plan).toBe(w.summary);
    expect((await w.passes.planNow()).steps).toEqual(w.steps);
    w.answer();
    await w.run(50);
    expect(shards(w.written)).toEqual(shards(w.steps));
  });

  it('writes nothing more once the leadership is lost between two slices', async () => {
    let goOn = (): void => {};
    w.brokenAt = { step: 2 * SLICE, wait: new Promise((resolve) => (goOn = resolve)) };
    w.passes.start();
    await w.run(50);
    const { length } = w.written;
    expect(length).toBeLessThanOrEqual(2 * SLICE);
    w.passes.close();
    goOn();
    await w.run(5_000);
    expect(w.written).toHaveLength(length);
    expect(w.plans).toBe(1);
  });

  it('gives up the rest where it is lost between two slices, and plans anew once what it wrote is settled', async () => {
    w.slow();
    w.brokenAt = { step: SLICE, wait: Promise.reject(new Error('the thread ended')) };
    w.brokenAt.wait.catch(() => {});
    w.passes.start();
    await w.run(60_000);
    expect(w.written).toHaveLength(200);
    // One pass at a time: what it proposed may still be applied.
    expect(w.plans).toBe(1);
    expect(w.stats.failedPasses).toBe(0);
    w.answer();
    await w.run(60_000);
    expect(w.stats.failedPasses).toBe(1);
    expect(w.plans).toBe(2);
    expect(shards(w.written)).toEqual(shards(w.steps.slice(0, 200)));
  });

  it('says of which revision a whole plan is, whatever is written before it is answered', async () => {
    const { state } = w.fixture;
    const { revision } = state;
    w.onPlanned = () => w.fixture.write({ type: 'setDrain', broker: 'b00', drain: true });
    expect(await w.passes.planNow()).toMatchObject({ revision, steps: w.steps });
    expect(state.revision).toBeGreaterThan(revision);
  });
});
