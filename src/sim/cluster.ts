import { COPY_PATH } from '../broker/index.ts';
import { EvenkeelError } from '../errors.ts';
import type { Message } from '../../raft/index.ts';
import { RaftChecks } from './checks.ts';
import { quietLine, type BrokerLine } from './broker-net.ts';
import { CopyChecks, type RunningBroker, type StoredCopies } from './copy-checks.ts';
import { HEALTHY_DISK, isSimulatedFailure, SimDisk } from './disk.ts';
import { HEALTHY_LINK, SimNetwork } from './net.ts';
import type { BootContext, Member, PlacementView, SimKit } from './kit.ts';
import type { SimPlan, Target } from './plan.ts';
import { ANY_FOLLOWER, ANY_LEADER } from './plan.ts';
import type { SimRandom } from './random.ts';
import { RecordChecks } from './record-checks.ts';
import type { CrashPoint, Tap } from './taps.ts';
import { ServiceChecks } from './service-checks.ts';
import { SimProcess, type SimWorld } from './world.ts';

/** Paths of the peers' sockets whose frames may be lost, doubled and overtaken: heartbeats, votes and appends. */
const LOSSY_PATHS = ['/peer', '/peer/log'];
const PEER_PATHS = [...LOSSY_PATHS, '/peer/calls'];
/** How long a supervisor waits before it starts a process that ended by itself again. */
const SUPERVISOR_MS = 500;

interface Host {
  readonly id: string;
  readonly disk: SimDisk;
  readonly line: BrokerLine;
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
  readonly service = new ServiceChecks();
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
      const host = {
        id,
        disk,
        line: quietLine(),
        lives: 0,
        process: null,
        member: null,
        broker: null,
        armed: null,
      };
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

  line(id: string): BrokerLine {
    return this.#host(id).line;
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

  /** Of a broker that is down: its disk forgets writes, which it finds out when it starts. */
  loseTail(id: string, writes: number): void {
    const host = this.#host(id);
    if (host.process === null) host.rotten ||= host.disk.loseTail(writes);
  }

  /** Whether a leader works: it reaches a quorum, both ways and fast, of members that run. */
  get planeIsWell(): boolean {
    const { leader } = this;
    if (leader === null || !this.#runs(leader)) return false;
    const reached = this.plan.members.filter((id) => this.#runs(id) && this.#isLinked(leader, id));
    return reached.length * 2 > this.plan.members.length;
  }

  /** Whether a broker could lead: it runs, is registered, its disk works, and it reaches every member. */
  isWell(broker: string): boolean {
    const { broker: running, line, disk } = this.#host(broker);
    if (!this.#runs(broker) || running?.isRegistered !== true) return false;
    const isQuiet = line.swallowed.size === 0 && line.answersToLose === 0;
    return isQuiet && disk.isWell && this.plan.members.every((id) => this.#isLinked(broker, id));
  }

  #runs(id: string): boolean {
    return this.#host(id).process?.stalled === false;
  }

  #isLinked(a: string, b: string): boolean {
    return a === b || (this.network.isWell(a, b) && this.network.isWell(b, a));
  }

  /** Whether all that the broker holds in sync is in sync on another too, as the state says that no running member is ahead of. */
  isSpare(broker: string): boolean {
    return this.newestPlacement?.isSpare(broker) ?? false;
  }

  /** As that member has it which has applied the most. */
  get newestPlacement(): PlacementView | null {
    const members = this.plan.members.map((id) => this.#host(id).member);
    const newest = members.find((member) => member?.appliedIndex === this.checks.committedIndex);
    return newest?.placement ?? null;
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
    for (const id of this.plan.brokers) this.network.setRefused(id, COPY_PATH, false);
    for (const id of this.plan.members) this.setPeersRefused(id, false);
    this.network.breakHeldUp(this.world.nowMs + 2 * delayMaxMs);
  }

  /** A member's sockets to its peers break, and it takes no new ones. */
  setPeersRefused(id: string, refused: boolean): void {
    for (const path of PEER_PATHS) this.network.setRefused(id, path, refused);
  }

  healDisks(): void {
    const { syncMaxMs } = this.plan.settings;
    for (const { disk, line } of this.#hosts.values()) {
      disk.heal({ ...HEALTHY_DISK, syncMaxMs });
      Object.assign(line, quietLine());
    }
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
      line: host.line,
      replicationFactor: this.plan.replicationFactor,
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
      if (this.plan.brokers.includes(host.id)) this.#replaceDisk(host);
      else this.ban(host.id);
      return;
    }
    if (!isSimulatedFailure(error)) {
      this.world.fail(new Error(`${host.id} stopped itself: ${error.message}`, { cause: error }));
      return;
    }
    this.kill(host.id, { powerCut: false, downMs: SUPERVISOR_MS });
  }

  /** What an operator does with a broker that finds its disk rotten. */
  #replaceDisk(host: Host): void {
    this.kill(host.id, { powerCut: false, downMs: SUPERVISOR_MS });
    host.disk.wipe();
    host.rotten = false;
    this.copies.wiped(host.id);
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
