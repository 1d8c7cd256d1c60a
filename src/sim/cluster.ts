import { EvenkeelError } from '../errors.ts';
import type { Net } from '../net.ts';
import type { Disk } from '../disk.ts';
import type { Message } from '../../raft/index.ts';
import { RaftChecks } from './checks.ts';
import { CopyChecks, type RunningBroker, type StoredCopies } from './copy-checks.ts';
import { HEALTHY_DISK, isSimulatedFailure, SimDisk } from './disk.ts';
import { HEALTHY_LINK, SimNetwork } from './net.ts';
import type { SimPlan, SimSettings, Target } from './plan.ts';
import { ANY_FOLLOWER, ANY_LEADER } from './plan.ts';
import type { SimRandom } from './random.ts';
import { RecordChecks } from './record-checks.ts';
import type { CrashPoint, Tap } from './taps.ts';
import { SimProcess, type SimWorld } from './world.ts';

/** Paths of the peers' sockets whose frames may be lost, doubled and overtaken: heartbeats, votes and appends. */
const LOSSY_PATHS = ['/peer', '/peer/log'];
/** How long a supervisor waits before it starts a process that ended by itself again. */
const SUPERVISOR_MS = 500;

/** What a process is started with. */
export interface BootContext {
  readonly id: string;
  readonly members: readonly string[];
  readonly settings: SimSettings;
  /** A broker's cap. */
  readonly maxShards: number | null;
  readonly process: SimProcess;
  readonly net: Net;
  readonly disk: Disk;
  readonly tap: Tap;
  readonly copyChecks: CopyChecks;
  /** It stopped itself. */
  onFatal(error: Error): void;
}

/** One running member, as clients and the world meet it. Every refusal is an EvenkeelError. */
export interface Member {
  /** For people: its role, term, and how far its log goes. */
  readonly description: string;
  readonly leads: boolean;
  readonly term: number;
  readonly appliedIndex: number;
  readonly stateHash: string;
  /** Sees to it that these registers are there. May be repeated. */
  prepare(keys: readonly string[], deadlineMs: number): Promise<void>;
  openSession(deadlineMs: number): Promise<number>;
  write(request: WriteRequest, deadlineMs: number): Promise<void>;
  read(key: string, deadlineMs: number): Promise<RegisterValue>;
  transferLeadership(to: string): Promise<void>;
  snapshotNow(): Promise<void>;
  /** Throws where a bound on what it holds in memory is broken. */
  checkBounds(): void;
  /** Only where brokers are. */
  readonly placement: PlacementView | null;
}

/** Who holds which shard, as one member has applied it. */
export interface PlacementView {
  /** Where that shard's leader takes clients; `null`: nobody is known to. */
  addressOf(shard: string): string | null;
  /** Whether all brokers are live, and all that this one holds in sync is in sync on another too. */
  isSpare(broker: string): boolean;
  setDrain(broker: string, drain: boolean, deadlineMs: number): Promise<void>;
  /** Shards of which no broker has a copy that is known to be whole, though all brokers are live. */
  lost(): string[];
  /** What an operator says of a shard that is lost: it begins anew, empty. */
  abandon(shard: string, deadlineMs: number): Promise<void>;
  /** What is not yet as it should be when all is whole and has come to rest; `null`: nothing. */
  unsettled(): string | null;
}

/** What runs on the hosts: which code the simulated world is made of. */
export interface SimKit {
  member(context: BootContext): Promise<Member>;
  /** `null`: consensus alone. */
  readonly broker: {
    boot(context: BootContext): Promise<RunningBroker>;
    /** What a broker that runs no more has on its disk, by shard. */
    stored(context: BootContext): Promise<ReadonlyMap<string, readonly string[]>>;
  } | null;
}

export interface WriteRequest {
  readonly session: number;
  readonly n: number;
  readonly key: string;
  readonly value: string;
  /** Refused with `conflict` unless the register is still as it was at this revision. `null`: whatever it is. */
  readonly expectedRevision: number | null;
}

export interface RegisterValue {
  readonly value: string | null;
  readonly revision: number;
}

interface Host {
  readonly id: string;
  readonly disk: SimDisk;
  lives: number;
  process: SimProcess | null;
  member: Member | null;
  broker: RunningBroker | null;
  /** Dies when the point has been passed `skip` more times. */
  armed: { point: CrashPoint; skip: number; powerCut: boolean; downMs: number } | null;
  /** A bit of its disk was flipped: refusing to start is right. */
  rotten: boolean;
  /** It must stay down. */
  banned: boolean;
}

/** The machines of one run and what happens to them. */
export class SimCluster {
  readonly world: SimWorld;
  readonly plan: SimPlan;
  readonly network: SimNetwork;
  readonly checks: RaftChecks;
  readonly records = new RecordChecks();
  readonly copies: CopyChecks;
  /** Messages between members, by sender, since the start. */
  readonly sent = new Map<string, number>();
  readonly #hosts = new Map<string, Host>();
  readonly #kit: SimKit;
  readonly #random: SimRandom;

  constructor(world: SimWorld, plan: SimPlan, kit: SimKit) {
    this.world = world;
    this.plan = plan;
    this.#kit = kit;
    this.#random = world.random('cluster');
    this.network = new SimNetwork(world, { lossyPaths: LOSSY_PATHS });
    this.checks = new RaftChecks(plan.members);
    this.copies = new CopyChecks(this.records, () => this.#runningBrokers());
    for (const id of this.hosts) {
      const disk = new SimDisk(world, id);
      const host = { id, disk, lives: 0, process: null, member: null, broker: null, armed: null };
      this.#hosts.set(id, { ...host, rotten: false, banned: false });
    }
    this.healLinks();
    this.healDisks();
  }

  /** Members and brokers. */
  get hosts(): readonly string[] {
    return [...this.plan.members, ...this.plan.brokers];
  }

  startAll(): void {
    for (const host of this.#hosts.values()) this.#start(host);
  }

  disk(id: string): SimDisk {
    return this.#host(id).disk;
  }

  process(id: string): SimProcess | null {
    return this.#host(id).process;
  }

  /** A running member; `null` while it is down or still starting. */
  member(id: string): Member | null {
    return this.#host(id).member;
  }

  /** For people: where everybody is. */
  describe(): string {
    return [...this.#hosts.values()]
      .map(({ id, process, member, broker }) => {
        const state = process === null ? 'down' : process.stalled ? 'stalled' : 'up';
        return `${id} ${state}: ${(member ?? broker)?.description ?? 'not serving'}`;
      })
      .join('\n  ');
  }

  get leader(): string | null {
    let best: { id: string; term: number } | null = null;
    for (const { id, member } of this.#hosts.values()) {
      if (member?.leads === true && member.term > (best?.term ?? -1)) best = { id, term: member.term };
    }
    return best?.id ?? null;
  }

  /** Who a target is now; with no leader, anybody. */
  resolve(target: Target): string {
    const { members } = this.plan;
    if (target !== ANY_LEADER && target !== ANY_FOLLOWER) return target;
    const { leader } = this;
    if (leader === null) return this.#random.pick(members);
    return target === ANY_LEADER ? leader : this.#random.pick(members.filter((id) => id !== leader));
  }

  kill(id: string, options: { powerCut: boolean; downMs: number }): void {
    const host = this.#host(id);
    if (host.process?.alive !== true) return;
    this.world.trace.text(`kill ${id}`);
    if (options.powerCut) this.network.setPower(id, false);
    host.process.kill();
    host.disk.settle(options.powerCut);
    host.process = null;
    host.member = null;
    host.broker = null;
    host.armed = null;
    this.world.schedule(options.downMs, `start ${id}`, () => this.start(id));
  }

  /** Starts a member that is down. */
  start(id: string): void {
    const host = this.#host(id);
    if (host.process === null && !host.banned) this.#start(host);
  }

  /** Down for good. */
  ban(id: string): void {
    this.#host(id).banned = true;
    this.kill(id, { powerCut: false, downMs: 0 });
  }

  arm(id: string, crash: { point: CrashPoint; skip: number; powerCut: boolean; downMs: number }): void {
    this.#host(id).armed = { ...crash };
  }

  /** Of a member that is down. */
  flipBit(id: string): void {
    const host = this.#host(id);
    if (host.process === null) host.rotten ||= host.disk.flipBit();
  }

  /** A broker comes back with an empty disk; false where that could lose what was acknowledged, and it keeps it. */
  wipe(id: string, downMs: number): boolean {
    const host = this.#host(id);
    if (host.process === null || !this.#isSpare(id)) return false;
    this.kill(id, { powerCut: true, downMs });
    host.disk.wipe();
    this.copies.wiped(id);
    return true;
  }

  /** As the state says that no running member is ahead of. */
  #isSpare(broker: string): boolean {
    const members = this.plan.members.map((id) => this.#host(id).member);
    const newest = members.find((member) => member?.appliedIndex === this.checks.committedIndex);
    return newest?.placement?.isSpare(broker) ?? false;
  }

  failDisk(id: string, full: boolean, forMs: number): void {
    const host = this.#host(id);
    if (!full) host.disk.failNextWrite();
    else {
      host.disk.faults.full = true;
      this.world.schedule(forMs, `room on ${id}`, () => (host.disk.faults.full = false));
    }
  }

  healLinks(): void {
    const { delayMinMs, delayMaxMs } = this.plan.settings;
    for (const from of this.hosts) {
      for (const to of this.hosts) {
        if (from === to) continue;
        this.network.setCut(from, to, false);
        Object.assign(this.network.link(from, to), { ...HEALTHY_LINK, delayMinMs, delayMaxMs });
      }
    }
    this.network.breakHeldUp(this.world.nowMs + 2 * delayMaxMs);
  }

  healDisks(): void {
    const { syncMaxMs } = this.plan.settings;
    for (const { disk } of this.#hosts.values()) disk.heal({ ...HEALTHY_DISK, syncMaxMs });
  }

  /** Crashes that were prepared and have not come do not come any more. */
  disarm(): void {
    for (const host of this.#hosts.values()) host.armed = null;
  }

  /** Those that answer: one that is stopped answers nothing. */
  #runningBrokers(): ReadonlyMap<string, RunningBroker> {
    const running = new Map<string, RunningBroker>();
    for (const id of this.plan.brokers) {
      const { process, broker } = this.#host(id);
      if (broker !== null && process?.stalled === false) running.set(id, broker);
    }
    return running;
  }

  /** Ends all brokers, for good, and reads what they have on their disks. */
  async storedCopies(): Promise<StoredCopies> {
    const stored = new Map<string, ReadonlyMap<string, readonly string[]>>();
    for (const id of this.plan.brokers) {
      this.ban(id);
      const host = this.#host(id);
      const values = await this.#kit.broker?.stored(this.#context(host, this.#process(host)));
      if (values !== undefined) stored.set(id, values);
    }
    return stored;
  }

  #process({ id, lives }: Host): SimProcess {
    const { driftPart, wallOffsetMs } = this.plan.settings;
    return new SimProcess(this.world, id, {
      life: lives,
      driftPart: driftPart[id] ?? 0,
      wallOffsetMs: wallOffsetMs[id] ?? 0,
    });
  }

  #start(host: Host): void {
    const { id } = host;
    this.network.setPower(id, true);
    host.lives++;
    const process = this.#process(host);
    host.process = process;
    this.#boot(host, this.#context(host, process)).catch((error: unknown) =>
      this.#ended(host, process, error instanceof Error ? error : new Error(String(error))),
    );
  }

  #context(host: Host, process: SimProcess): BootContext {
    const { id } = host;
    const { settings, members } = this.plan;
    return {
      id,
      members,
      settings,
      maxShards: this.plan.maxShards,
      process,
      net: this.network.netOf(process),
      disk: host.disk.diskOf(process),
      tap: this.#tap(host, process),
      copyChecks: this.copies,
      onFatal: (error) => this.#ended(host, process, error),
    };
  }

  async #boot(host: Host, context: BootContext): Promise<void> {
    if (!this.plan.brokers.includes(host.id)) {
      const member = await this.#kit.member(context);
      if (context.process.alive) host.member = member;
    } else if (this.#kit.broker !== null) {
      const broker = await this.#kit.broker.boot(context);
      if (context.process.alive) host.broker = broker;
    }
  }

  /** A process ended by itself: right if its disk failed, a fault of ours if not. */
  #ended(host: Host, process: SimProcess, error: Error): void {
    if (!process.alive) return;
    if (host.rotten && error instanceof EvenkeelError && error.code === 'corrupt') {
      this.ban(host.id);
      return;
    }
    if (!isSimulatedFailure(error)) {
      this.world.fail(new Error(`${host.id} stopped itself: ${error.message}`, { cause: error }));
      return;
    }
    this.kill(host.id, { powerCut: false, downMs: SUPERVISOR_MS });
  }

  #tap(host: Host, process: SimProcess): Tap {
    return {
      id: host.id,
      process,
      checks: this.checks,
      reached: (point: CrashPoint) => {
        const { armed } = host;
        if (armed?.point !== point || host.process !== process) return;
        if (armed.skip-- <= 0) this.kill(host.id, armed);
      },
      sent: (messages: readonly Message[]) => {
        this.sent.set(host.id, (this.sent.get(host.id) ?? 0) + messages.length);
      },
    };
  }

  #host(id: string): Host {
    const host = this.#hosts.get(id);
    if (host === undefined) throw new Error(`no host ${id}`);
    return host;
  }
}
