import { BrokerFaults } from './broker-faults.ts';
import type { SimCluster } from './cluster.ts';
import type { PlacementView } from './kit.ts';
import { operate } from './operator-faults.ts';
import { isBrokerAction, isMemberAction, isOperatorAction, isTopologyAction } from './action-kinds.ts';
import {
  ANY_FOLLOWER,
  ANY_LEADER,
  type ClusterAction,
  type MemberAction,
  type OperatorAction,
  type SimAction,
  type TopologyAction,
} from './plan.ts';
import { beginTopology } from './topology-faults.ts';

const DRAIN_MS = 2_000;
const BURST_MS = 2_000;
/** How often it is looked whether a second member leads. */
const LOOK_MS = 1;

/** Clients that act just when a fault has come to its point. */
export interface FaultClients {
  /** This leader was cut off. */
  onStranded(leader: string): void;
  /** Another member leads by now, and the old leader does not know it yet. */
  onSucceeded(old: string, next: string): void;
  /** Something is about to befall this broker. */
  onBroker(broker: string): void;
}

/** Carries a plan's actions out, and undoes them. */
export class FaultInjector {
  readonly #cluster: SimCluster;
  /** `from>to` → how many cuts are on it now. */
  readonly #cuts = new Map<string, number>();
  readonly #drained = new Set<string>();
  readonly #clients: FaultClients;
  readonly #brokers: BrokerFaults;
  #policyChanged = false;
  #hasImported = false;
  #healed = false;

  constructor(cluster: SimCluster, clients: FaultClients) {
    this.#cluster = cluster;
    this.#clients = clients;
    this.#brokers = this.#brokerFaults();
    const { world, plan } = cluster;
    for (const action of plan.actions) {
      world.schedule(action.atMs, `fault ${action.type}`, () => {
        if (this.#healed || (this.#brokers.sparesBrokers && this.#hitsBroker(action))) return;
        if (isBrokerAction(action)) this.#brokers.begin(action);
        else if (isOperatorAction(action)) this.#operate(action);
        else if (isTopologyAction(action)) this.#connect(action);
        else if (isMemberAction(action)) this.#hit(cluster.resolve(action.target), action);
        else this.#begin(action);
      });
    }
  }

  #brokerFaults(): BrokerFaults {
    const areWell = (): boolean => this.#brokersAreWell;
    const isHealed = (): boolean => this.#healed;
    return new BrokerFaults(this.#cluster, {
      get brokersAreWell() {
        return areWell();
      },
      get isHealed() {
        return isHealed();
      },
      cut: (pairs, forMs) => this.#cut(pairs, forMs),
      during: (forMs, begin, end) => this.#for(forMs, begin, end),
      burst: (member, writes) => this.#burst(member, writes),
      append: (broker) => this.#clients.onBroker(broker),
    });
  }

  #operate(action: OperatorAction): void {
    if (action.type === 'policy') this.#policyChanged = true;
    const cluster = this.#cluster;
    operate(action, {
      ask: (request) =>
        this.#ask(cluster.resolve(ANY_LEADER), async ({ placement }) => {
          if (placement !== null) await request(placement);
        }),
      during: (forMs, begin, end) => this.#for(forMs, begin, end),
      forget: () => {
        this.#hasImported = true;
        cluster.records.loseAll();
      },
    });
  }

  #connect(action: TopologyAction): void {
    const isHealed = (): boolean => this.#healed;
    beginTopology(action, {
      cluster: this.#cluster,
      get isHealed() {
        return isHealed();
      },
      cut: (pairs, forMs) => this.#cut(pairs, forMs),
      during: (forMs, begin, end) => this.#for(forMs, begin, end),
      handOver: (from, to) => this.#ask(from, (member) => member.transferLeadership(to)),
    });
  }

  get #brokersAreWell(): boolean {
    const { brokers } = this.#cluster.plan;
    const isCut = [...this.#cuts].some(
      ([pair, count]) => count > 0 && pair.split('>').some((id) => brokers.includes(id)),
    );
    return !isCut && brokers.every((id) => this.#cluster.process(id)?.stalled === false);
  }

  #hitsBroker(action: SimAction): boolean {
    const { brokers } = this.#cluster.plan;
    if (action.type === 'cut') return action.pairs.flat().some((id) => brokers.includes(id));
    if (action.type === 'island') return true;
    return 'target' in action && brokers.includes(action.target);
  }

  /** The cluster has been imported over itself. */
  get hasImported(): boolean {
    return this.#hasImported;
  }

  /** What an operator takes back once all is whole: emptied brokers, a changed policy. */
  get toTakeBack(): readonly ((placement: PlacementView, deadlineMs: number) => Promise<void>)[] {
    const steps = [...this.#drained].map(
      (broker) => (placement: PlacementView, deadlineMs: number) =>
        placement.setDrain(broker, false, deadlineMs),
    );
    if (!this.#policyChanged) return steps;
    return [...steps, (placement, deadlineMs) => placement.setPolicy(null, deadlineMs)];
  }

  /** The second phase: the core is whole, and nothing happens to it any more. */
  heal(): void {
    this.#healed = true;
    const cluster = this.#cluster;
    const { members, brokers, core, outsiders } = cluster.plan;
    for (const broker of brokers) {
      cluster.process(broker)?.resume(true);
      cluster.start(broker);
    }
    this.#cuts.clear();
    cluster.healLinks();
    cluster.healDisks();
    cluster.disarm();
    for (const id of members) {
      cluster.process(id)?.resume(true);
      if (core.includes(id) || outsiders === 'healed') {
        cluster.start(id);
      } else if (outsiders === 'killed') {
        cluster.ban(id);
      } else {
        for (const other of core) {
          if (outsiders === 'cut') cluster.network.setCut(id, other, true);
          cluster.network.setCut(other, id, true);
        }
      }
    }
  }

  #begin(action: ClusterAction): void {
    const { network, plan } = this.#cluster;
    const cluster = this.#cluster;
    switch (action.type) {
      case 'cut':
        this.#cut(action.pairs, action.forMs);
        break;
      case 'isolate': {
        this.#isolate(cluster.resolve(action.target), action.way, action.forMs);
        break;
      }
      case 'strand': {
        const id = cluster.resolve(ANY_LEADER);
        this.#isolate(id, 'both', action.forMs);
        this.#burst(id, action.writes);
        this.#clients.onStranded(id);
        break;
      }
      case 'lateNews':
        this.#lateNews(cluster.resolve(ANY_LEADER), action);
        break;
      case 'island':
        this.#island([cluster.resolve(ANY_LEADER), ...action.brokers], action.forMs);
        break;
      case 'slowLink': {
        const { delayMaxMs, bytesPerMs } = action;
        const link = network.link(action.from, action.to);
        const before = { delayMaxMs: plan.settings.delayMaxMs, bytesPerMs: 0 };
        this.#for(
          action.forMs,
          () => Object.assign(link, { delayMaxMs, bytesPerMs }),
          () => Object.assign(link, before),
        );
        break;
      }
      case 'lossyLinks': {
        const { lossPart, duplicatePart, reorderPart, lateMs, resetPart } = action;
        const links = plan.members.flatMap((a) =>
          plan.members.filter((b) => b !== a).map((b) => network.link(a, b)),
        );
        const set = (rates: object): void => {
          for (const link of links) Object.assign(link, rates);
        };
        this.#for(
          action.forMs,
          () => set({ lossPart, duplicatePart, reorderPart, lateMs, resetPart }),
          () => set({ lossPart: 0, duplicatePart: 0, reorderPart: 0, lateMs: 0, resetPart: 0 }),
        );
        break;
      }
      case 'breakLinks': {
        const id = cluster.resolve(action.target);
        for (const other of cluster.hosts) network.breakConnections(id, other);
        break;
      }
      case 'blackout':
        for (const id of plan.members) cluster.kill(id, action);
        break;
      case 'transfer': {
        const { leader } = cluster;
        // Refusals and time-outs are right answers here.
        if (leader !== null) this.#ask(leader, (member) => member.transferLeadership(action.to));
        break;
      }
      case 'drain': {
        const { broker } = action;
        this.#drained.add(broker);
        const set = (drain: boolean) => (): void =>
          this.#ask(cluster.resolve(ANY_LEADER), async (member) => {
            await member.placement?.setDrain(broker, drain, DRAIN_MS);
          });
        this.#for(action.forMs, set(true), set(false));
        break;
      }
    }
  }

  /** What happens to one member. */
  #hit(id: string, action: MemberAction): void {
    const cluster = this.#cluster;
    const process = cluster.process(id);
    switch (action.type) {
      case 'kill':
        cluster.kill(id, action);
        break;
      case 'crashAt':
        cluster.arm(id, action);
        break;
      case 'stall':
        if (process === null) break;
        this.#for(
          action.forMs,
          () => process.stall(),
          () => process.resume(action.timersFirst),
        );
        break;
      case 'slowDisk': {
        const { faults } = cluster.disk(id);
        const { syncMaxMs } = action;
        this.#for(
          action.forMs,
          () => Object.assign(faults, { syncMaxMs }),
          () => Object.assign(faults, { syncMaxMs: cluster.plan.settings.syncMaxMs }),
        );
        break;
      }
      case 'failDisk':
        if (this.#isBroker(id)) this.#brokers.failDisk(id, action.full, action.downMs);
        else cluster.failDisk(id, action.full, action.downMs);
        break;
      case 'jumpWall':
        process?.clock.jumpWall(action.byMs);
        break;
      case 'wipe':
        this.#brokers.wipe(id, action.downMs);
        break;
      case 'burst':
        this.#burst(id, action.writes);
        break;
      case 'flipBit':
        if (this.#isBroker(id)) {
          this.#brokers.flipBit(id, action.downMs);
          break;
        }
        cluster.kill(id, { powerCut: true, downMs: action.downMs });
        cluster.flipBit(id);
        break;
      case 'snapshot':
        this.#ask(id, (member) => member.snapshotNow());
        break;
    }
  }

  #isBroker(id: string): boolean {
    return this.#cluster.plan.brokers.includes(id);
  }

  #ask(id: string, request: (member: NonNullable<ReturnType<SimCluster['member']>>) => Promise<void>): void {
    this.#cluster.process(id)?.deliver(() => {
      const member = this.#cluster.member(id);
      if (member !== null) request(member).catch(() => {});
    });
  }

  #isolate(id: string, way: 'both' | 'in' | 'out', forMs: number): void {
    const others = this.#cluster.hosts.filter((other) => other !== id);
    const pairs = others.flatMap((other): [string, string][] => {
      if (way === 'in') return [[other, id]];
      return way === 'out'
        ? [[id, other]]
        : [
            [id, other],
            [other, id],
          ];
    });
    this.#cut(pairs, forMs);
  }

  /** What is acknowledged to it is still under way when another leads, and so is word of that. */
  #lateNews(leader: string, { delayMs, forMs }: { delayMs: number; forMs: number }): void {
    const { network, plan } = this.#cluster;
    const { delayMinMs, delayMaxMs } = plan.settings;
    const others = plan.members.filter((id) => id !== leader);
    const setDelay = (delays: { delayMinMs: number; delayMaxMs: number }) => (): void => {
      for (const id of others) Object.assign(network.link(id, leader), delays);
    };
    const isLong = { delayMinMs: delayMs, delayMaxMs: delayMs };
    this.#for(forMs, setDelay(isLong), setDelay({ delayMinMs, delayMaxMs }));
    const to = this.#cluster.resolve(ANY_FOLLOWER);
    this.#ask(leader, (member) => member.transferLeadership(to));
    this.#awaitTwoLeaders(leader, to, this.#cluster.world.nowMs + forMs);
  }

  #awaitTwoLeaders(old: string, next: string, untilMs: number): void {
    const { world } = this.#cluster;
    const leads = (id: string): boolean => this.#cluster.member(id)?.leads === true;
    if (this.#healed || !leads(old) || world.nowMs > untilMs) return;
    if (leads(next)) this.#clients.onSucceeded(old, next);
    else world.schedule(LOOK_MS, 'two leaders', () => this.#awaitTwoLeaders(old, next, untilMs));
  }

  #island(inside: readonly string[], forMs: number): void {
    const outside = this.#cluster.hosts.filter((id) => !inside.includes(id));
    const pairs = inside.flatMap((a) =>
      outside.flatMap((b): [string, string][] => [
        [a, b],
        [b, a],
      ]),
    );
    this.#cut(pairs, forMs);
  }

  /** Sessions that nobody uses: the shortest entries that change the state. */
  #burst(id: string, writes: number): void {
    for (let i = 0; i < writes; i++) {
      this.#ask(id, async (member) => {
        await member.openSession(BURST_MS);
      });
    }
  }

  #cut(pairs: readonly (readonly [string, string])[], forMs: number): void {
    const { network } = this.#cluster;
    const add = (by: number): void => {
      for (const [from, to] of pairs) {
        const key = `${from}>${to}`;
        const count = (this.#cuts.get(key) ?? 0) + by;
        this.#cuts.set(key, count);
        network.setCut(from, to, count > 0);
      }
    };
    this.#for(
      forMs,
      () => add(1),
      () => add(-1),
    );
  }

  /** Undone after a time, unless everything was healed before. */
  #for(forMs: number, begin: () => void, end: () => void): void {
    begin();
    this.#cluster.world.schedule(forMs, 'fault ends', () => {
      if (!this.#healed) end();
    });
  }
}
