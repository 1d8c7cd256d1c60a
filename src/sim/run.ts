import { SimClient } from './client.ts';
import type { StoredCopies } from './copy-checks.ts';
import { SimCluster } from './cluster.ts';
import type { Member, PlacementView, SimKit } from './kit.ts';
import { KEYS } from './draw-actions.ts';
import { TOPOLOGIES } from './draw-topologies.ts';
import { ElectionChecks, electionView } from './election-checks.ts';
import { FaultInjector } from './faults.ts';
import { History, type SimOperationRecord } from './history.ts';
import { ANY_LEADER, type SimPlan } from './plan.ts';
import type { SimRandom } from './random.ts';
import { RecordClient } from './record-client.ts';
import { PROBE, Witness } from './witness.ts';
import { SimWorld } from './world.ts';

/** Every run is at least this long. */
const LEAST_MS = 60_000;
/** After healing: elections that may pass before a write through every member of the core must succeed. */
const PROGRESS_ELECTIONS = 12;
const PROGRESS_BASE_MS = 3_000;
/** What clients have left to do once all is whole again. */
const REST_MS = 120_000;
/** Members that hold the same log may differ for this long. */
const CONVERGE_MS = 5_000;
/** For brokers to register, catch up, be counted live, and for every move that levels them. */
const SETTLE_MS = 180_000;
const READ_ALL_MS = 30_000;
const TAKE_BACK_MS = 1_000;
/** Of a run's stranded leaders, so many are asked, with a register each. */
const MAX_STRANDED = KEYS.length;
const STRANDED_OPERATIONS = 15;
const STRANDED_READERS = 3;
/** Of what befalls brokers, so much is accompanied by appends to some of their shards. */
const MAX_AIMED = 24;
const AIMED_SHARDS = 2;
const AIMED_APPENDS = 20;
const AIMED_EVERY_MS = 80;
const AIMED_READ_EACH = 4;
const BOUNDS_EVERY_MS = 1_000;
/** Who serves what: at no instant two. */
const SERVING_EVERY_MS = 50;
/** Whether somebody leads who can. */
const ELECTIONS_EVERY_MS = 50;
/** Who could be served, and is not. */
const SERVICE_EVERY_MS = 1_000;
/** Messages a member may send a virtual second, whatever happens. */
const MAX_MESSAGES_PER_SECOND = 10_000;

export interface SimOptions {
  readonly kit: SimKit;
  /** Says what is wrong with a history of registers; `null`: it is linearizable. */
  readonly judge: (records: readonly SimOperationRecord[]) => string | null;
}

export interface SimResult {
  /** `null`: nothing unsafe, and progress in the second phase. */
  readonly failure: string | null;
  readonly traceHash: string;
  readonly virtualMs: number;
  readonly steps: number;
  readonly acknowledged: number;
  readonly records: number;
  readonly committed: number;
  readonly leaders: number;
  readonly messages: number;
  /** Virtual time from healing to a write through every member of the core. */
  readonly recoveryMs: number;
}

/** Runs one plan from beginning to end. The same plan and code give the same result, hash included. */
export async function runPlan(plan: SimPlan, options: SimOptions): Promise<SimResult> {
  const run = new Run(plan, options);
  let failure: string | null = null;
  try {
    await run.play();
  } catch (error) {
    failure = describe(error);
  }
  return run.result(failure);
}

class Run {
  readonly #plan: SimPlan;
  readonly #options: SimOptions;
  readonly #world: SimWorld;
  readonly #cluster: SimCluster;
  readonly #history = new History();
  #recoveryMs = 0;
  readonly #random: SimRandom;
  #strandings = 0;
  #aimed = 0;
  #settled = false;

  constructor(plan: SimPlan, options: SimOptions) {
    this.#plan = plan;
    this.#options = options;
    this.#world = new SimWorld(plan.seed);
    this.#cluster = new SimCluster(this.#world, plan, options.kit);
    this.#random = this.#world.random('run');
  }

  async play(): Promise<void> {
    const { faultsEndMs } = this.#plan;
    const world = this.#world;
    const witness = new Witness(this.#cluster, this.#history);
    const faults = new FaultInjector(this.#cluster, {
      onStranded: (leader) => this.#askStranded(leader),
      onSucceeded: (old, next) => this.#guard(witness.compare(old, next)),
      onBroker: (broker) => this.#appendAt(broker),
    });
    this.#cluster.startAll();
    this.#watchBounds();
    this.#guard(witness.prepare());
    const clients = [...this.#startClients(), ...this.#startRecordClients()];
    await world.run({ untilMs: faultsEndMs });
    faults.heal();
    await this.#progress();
    const leaders = this.#cluster.checks.leaderCount;
    if (this.#plan.brokers.length > 0) this.#guard(this.#giveUpLost());
    const idle = (): boolean => clients.every((client) => client.done);
    await this.#within(REST_MS, 'every client is done', idle);
    await world.run({ untilMs: Math.max(LEAST_MS, world.nowMs) });
    if (this.#plan.brokers.length > 0) await this.#settle(faults.toTakeBack);
    await this.#converge();
    await this.#compareCopies();
    const since = this.#cluster.checks.leaderCount - leaders;
    if (since > 0) throw new Error(`no rest: ${since} more leaders after the healed core had one`);
    // An import puts registers back to what they were when the file was written.
    if (faults.hasImported) return;
    const wrong = this.#options.judge(this.#history.records);
    if (wrong !== null) throw new Error(`unsafe: ${wrong}`);
  }

  result(failure: string | null): SimResult {
    const { checks, sent } = this.#cluster;
    return {
      failure,
      traceHash: this.#world.trace.hex,
      virtualMs: Math.round(this.#world.nowMs),
      steps: this.#world.steps,
      acknowledged: this.#history.acknowledged,
      records: this.#cluster.records.count,
      committed: checks.committedIndex,
      leaders: checks.leaderCount,
      messages: [...sent.values()].reduce((sum, count) => sum + count, 0),
      recoveryMs: Math.round(this.#recoveryMs),
    };
  }

  #startClients(): SimClient[] {
    const { members, operations } = this.#plan;
    const names = [...new Set(operations.map((operation) => operation.client))];
    const keys = [...new Set(operations.map((operation) => operation.key))].sort();
    return names.map((name) => {
      const client = new SimClient(name, this.#cluster, this.#history, { members, keys });
      this.#guard(client.run(operations.filter((operation) => operation.client === name)));
      return client;
    });
  }

  /** Reads at a leader that was cut off, while the others are written to: none may miss what they acknowledge. */
  #askStranded(leader: string): void {
    const { members, settings } = this.#plan;
    const others = members.filter((id) => id !== leader);
    const round = ++this.#strandings;
    if (round > MAX_STRANDED) return;
    const key = KEYS[round - 1] as string;
    const start = (name: string, at: readonly string[], type: 'read' | 'write'): void => {
      // A write that is given up too soon is one more whose outcome the judge must guess.
      const patience = type === 'read' ? { patienceMs: settings.electionTimeoutMs } : {};
      const options = { members: at, keys: [key], ...patience };
      const operations = Array.from({ length: STRANDED_OPERATIONS }, (_, i) => ({
        client: name,
        type,
        key,
        value: `${name}-${i}`,
        thinkMs: settings.electionTimeoutMs / 10,
        first: at[0] as string,
      }));
      this.#guard(new SimClient(name, this.#cluster, this.#history, options).run(operations));
    };
    start(`writer ${round}`, others, 'write');
    for (let i = 0; i < STRANDED_READERS; i++) start(`reader ${round}.${i}`, [leader], 'read');
  }

  #startRecordClients(): RecordClient[] {
    const { records } = this.#plan;
    return [...new Set(records.map((operation) => operation.client))].map((name) => {
      const client = new RecordClient(name, this.#cluster);
      this.#guard(client.run(records.filter((operation) => operation.client === name)));
      return client;
    });
  }

  /** Appends to some of what a broker leads, and reads it, close together. */
  #appendAt(broker: string): void {
    const round = ++this.#aimed;
    const led = this.#cluster.newestPlacement?.ledBy(broker) ?? [];
    if (round > MAX_AIMED || led.length === 0) return;
    const name = `aimed ${round}`;
    const shards = this.#random.shuffle(led).slice(0, AIMED_SHARDS);
    for (const shard of shards) {
      const operations = Array.from({ length: AIMED_APPENDS }, (_, i) => ({
        client: name,
        type: i % AIMED_READ_EACH === 0 ? ('read' as const) : ('append' as const),
        shard,
        value: `${name} ${shard} ${i}`,
        thinkMs: AIMED_EVERY_MS,
      }));
      this.#guard(new RecordClient(`${name} ${shard}`, this.#cluster).run(operations));
    }
  }

  /** A fault of the simulator's own parts ends the run. */
  #guard(promise: Promise<void>): void {
    promise.catch((error: unknown) => {
      this.#world.fail(error instanceof Error ? error : new Error(String(error)));
    });
  }

  /** A healed core must take a write, and read it back, through each of its members. */
  async #progress(): Promise<void> {
    const begunMs = this.#world.nowMs;
    const { core, settings } = this.#plan;
    const probes = core.map((id) => {
      const options = { members: [id], keys: [PROBE] };
      return new SimClient(`probe ${id}`, this.#cluster, this.#history, options);
    });
    for (const probe of probes) this.#guard(probe.probe(PROBE, probe.name));
    const done = (): boolean => probes.every((probe) => probe.done);
    const boundMs = PROGRESS_BASE_MS + PROGRESS_ELECTIONS * settings.electionTimeoutMs;
    await this.#within(boundMs, 'a write through every member of the healed core', done);
    this.#recoveryMs = this.#world.nowMs - begunMs;
  }

  /** Left alone, the brokers come to rest: every copy in sync, all level; and every acknowledged record is there. */
  async #settle(toTakeBack: FaultInjector['toTakeBack']): Promise<void> {
    const waiting = new Set(toTakeBack);
    for (const step of toTakeBack) this.#guard(this.#takeBack(step).then(() => void waiting.delete(step)));
    let unsettled: string | null = null;
    await this.#within(
      SETTLE_MS,
      () => `a level cluster (${unsettled})`,
      () => {
        const view = this.#cluster.member(this.#plan.core[0] as string)?.placement;
        unsettled = view?.unsettled() ?? (view === undefined ? 'no view' : null);
        return unsettled === null && waiting.size === 0;
      },
    );
    this.#settled = true;
    const reader = new RecordClient('reader', this.#cluster);
    const shards = new Set(this.#plan.records.map((operation) => operation.shard));
    this.#guard(reader.readAll([...shards].sort()));
    await this.#within(READ_ALL_MS, 'a read of every shard', () => reader.done);
  }

  /**
   * A shard placed on one broker alone, which then came back with an empty disk, waits for its operator. The faults
   * wipe no broker that alone holds what was acknowledged, so nothing that was may be missing afterwards (but see
   * `CopyChecks.wiped`).
   */
  async #giveUpLost(): Promise<void> {
    while (!this.#settled) {
      const placement = this.#leaderPlacement;
      for (const shard of placement?.lost() ?? []) {
        await placement?.abandon(shard, TAKE_BACK_MS).catch(() => {
          // Another leader, or placed meanwhile: looked at again.
        });
      }
      await this.#pause(TAKE_BACK_MS);
    }
  }

  get #leaderPlacement(): PlacementView | null {
    return this.#cluster.member(this.#cluster.resolve(ANY_LEADER))?.placement ?? null;
  }

  #pause(ms: number): Promise<void> {
    return new Promise<void>((resolve) => this.#world.schedule(ms, 'pause', resolve));
  }

  async #takeBack(step: FaultInjector['toTakeBack'][number]): Promise<void> {
    for (;;) {
      const placement = this.#leaderPlacement;
      try {
        if (placement !== null) return await step(placement, TAKE_BACK_MS);
      } catch {
        // Another leader, or none yet.
      }
      await this.#pause(TAKE_BACK_MS);
    }
  }

  /** With nothing more to do, the core's members come to hold the same state. */
  async #converge(): Promise<void> {
    const core = (): (Member | null)[] => this.#plan.core.map((id) => this.#cluster.member(id));
    await this.#within(CONVERGE_MS, 'equal applied index and state in the core', () => {
      const [first, ...rest] = core();
      return rest.every(
        (member) => member?.appliedIndex === first?.appliedIndex && member?.stateHash === first?.stateHash,
      );
    });
  }

  /** What every copy has on its disk, once all is at rest. */
  async #compareCopies(): Promise<void> {
    let stored: StoredCopies | null = null;
    this.#guard(this.#cluster.storedCopies().then((copies) => void (stored = copies)));
    await this.#within(READ_ALL_MS, 'a look at every disk', () => stored !== null);
    if (stored !== null) this.#cluster.copies.atRest(stored);
  }

  async #within(ms: number, what: string | (() => string), holds: () => boolean): Promise<void> {
    const untilMs = this.#world.nowMs + ms;
    await this.#world.run({ untilMs, until: holds });
    if (holds()) return;
    const text = typeof what === 'string' ? what : what();
    throw new Error(
      `no progress: ${text} not within ${ms} ms of virtual time\n  ${this.#cluster.describe()}`,
    );
  }

  #watchBounds(): void {
    const before = new Map<string, number>();
    const look = (): void => {
      for (const id of this.#plan.members) {
        this.#cluster.member(id)?.checkBounds();
        const sent = this.#cluster.sent.get(id) ?? 0;
        const rate = ((sent - (before.get(id) ?? 0)) * 1_000) / BOUNDS_EVERY_MS;
        before.set(id, sent);
        if (rate > MAX_MESSAGES_PER_SECOND) throw new Error(`bound: ${id} sends ${rate} messages a second`);
      }
      this.#world.schedule(BOUNDS_EVERY_MS, 'bounds', look);
    };
    this.#world.schedule(BOUNDS_EVERY_MS, 'bounds', look);
    // Elsewhere a leader that is gone may be heard for seconds: what it sent waits on a slow link.
    if (this.#plan.faults.some((fault) => TOPOLOGIES.includes(fault))) {
      this.#watchElections(new ElectionChecks(this.#plan.settings.electionTimeoutMs));
    }
    if (this.#plan.brokers.length === 0) return;
    this.#watchServing();
    this.#guard(this.#watchService());
  }

  #watchElections(checks: ElectionChecks): void {
    checks.look(electionView(this.#cluster));
    this.#world.schedule(ELECTIONS_EVERY_MS, 'elections', () => this.#watchElections(checks));
  }

  /** Until all has come to rest. */
  async #watchService(): Promise<void> {
    const cluster = this.#cluster;
    const client = new RecordClient('trier', cluster);
    for (let round = 0; !this.#settled; round++) {
      await this.#pause(SERVICE_EVERY_MS);
      const nowMs = this.#world.nowMs;
      const leader = cluster.planeIsWell ? this.#leaderPlacement : null;
      cluster.service.lookAtTime(nowMs, leader?.clusterTimeMs ?? null);
      const isWell = (broker: string): boolean => cluster.isWell(broker);
      const toTry = cluster.service.look({ nowMs, shards: leader?.shards ?? null, isWell });
      if (toTry.length > 0) await client.appendOnce(toTry, `try ${round}`);
    }
  }

  #watchServing(): void {
    this.#cluster.copies.look();
    this.#world.schedule(SERVING_EVERY_MS, 'serving', () => this.#watchServing());
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `\n${error.cause.stack ?? error.cause.message}` : '';
  const ours = /^(unsafe|unserved)/.test(error.message) || /^no (progress|rest|leader)/.test(error.message);
  return `${ours ? error.message : (error.stack ?? error.message)}${cause}`;
}
