import { COPY_PATH } from '../broker/index.ts';
import type { SimCluster } from './cluster.ts';
import { HEALTHY_DISK } from './disk.ts';
import { ANY_LEADER, type BrokerAction } from './plan.ts';

type Of<T extends BrokerAction['type']> = Extract<BrokerAction, { type: T }>;

/** A process that is stopped to have its disk copied is back after this. */
const COPY_TAKES_MS = 10;
/** For so long after a disk went back the other brokers are left alone: its broker has registered and caught up by then. */
const SPARE_MS = 15_000;
/** How often it is looked whether a disk may go back, and for how long. */
const LOOK_MS = 200;
const PATIENCE_MS = 5_000;
/** A broker whose disk failed is restarted by somebody so long after. */
const RESTART_MS = 4_000;
/** What members say comes later by a part at a time: a broker that hears nothing for half a lease dials another. */
const DELAY_STEP_MS = 500;
const DELAY_EVERY_MS = 1_000;
/** A client's reads are under way by then. */
const STALL_AFTER_MS = 600;
/** A quorum that writes so slowly that a proposal waits for seconds. */
const SLOW_QUORUM = { syncMinMs: 1_000, syncMaxMs: 2_500 };
/** Proposals at a leader that are to leave no room for its own. */
const OVERLOAD_FROM_MS = 5_800;
const OVERLOAD_EVERY_MS = 4;
const OVERLOAD_WRITES = 30;
const OVERLOAD_LONGER_MS = 100;

/** What the injector of all faults does for those of brokers. */
export interface BrokerFaultHost {
  /** Nothing that was begun before keeps a broker from the others. */
  readonly brokersAreWell: boolean;
  readonly isHealed: boolean;
  cut(pairs: readonly (readonly [string, string])[], forMs: number): void;
  /** Undone after a time, unless everything was healed before. */
  during(forMs: number, begin: () => void, end: () => void): void;
  burst(member: string, writes: number): void;
  /** Clients append to what the broker leads for a moment. */
  append(broker: string): void;
}

/** Carries out what befalls single brokers: their disks, and their lines to the control plane and to each other. */
export class BrokerFaults {
  readonly #cluster: SimCluster;
  readonly #host: BrokerFaultHost;
  #sparesUntilMs = 0;

  constructor(cluster: SimCluster, host: BrokerFaultHost) {
    this.#cluster = cluster;
    this.#host = host;
  }

  /** A disk has gone back: whatever else falls silent may hold the only other copies. */
  get sparesBrokers(): boolean {
    return this.#cluster.world.nowMs < this.#sparesUntilMs;
  }

  begin(action: BrokerAction): void {
    const cluster = this.#cluster;
    const { target } = action;
    switch (action.type) {
      case 'restore':
        this.#restore(action);
        break;
      case 'clones':
        this.#clones(action);
        break;
      case 'loseTail':
        this.#append(target);
        this.#loseTail(target, action.downMs, action.writes);
        break;
      case 'slowReads': {
        const { faults } = cluster.disk(target);
        const { readMaxMs } = faults;
        this.#host.during(
          action.forMs,
          () => (faults.readMaxMs = action.readMaxMs),
          () => (faults.readMaxMs = readMaxMs),
        );
        this.#append(target);
        if (action.stallMs > 0) this.#later(STALL_AFTER_MS, () => this.#stall(target, action.stallMs));
        break;
      }
      case 'mute':
        this.#mute(action);
        break;
      case 'loseAnswers':
        Object.assign(cluster.line(target), { answersToLose: action.reports, deafMs: action.deafMs });
        this.#append(target);
        break;
      case 'refuseCopies':
        this.#host.during(
          action.forMs,
          () => cluster.network.setRefused(target, COPY_PATH, true),
          () => cluster.network.setRefused(target, COPY_PATH, false),
        );
        break;
      case 'lateAnswers':
        this.#lateAnswers(action);
        break;
      case 'otherBrokersReturn':
        this.#othersReturn(action);
        break;
      case 'heardLate':
        this.#heardLate(action);
        break;
      case 'overload':
        this.#overload(action);
    }
  }

  /** A broker comes back with an empty disk. */
  wipe(broker: string, downMs: number): void {
    this.#takeBack(broker, downMs, () => this.#cluster.disk(broker).wipe());
  }

  flipBit(broker: string, downMs: number): void {
    this.#takeBack(broker, downMs, () => this.#cluster.flipBit(broker));
  }

  /** Without a power cut: together with one, the mark may go back as far as the store, and nobody can tell. */
  #loseTail(broker: string, downMs: number, writes: number): void {
    this.#takeBack(broker, downMs, () => this.#cluster.loseTail(broker, writes), false);
  }

  /** What is written after a write that failed, and a restart that shows what became of it. */
  failDisk(broker: string, full: boolean, forMs: number): void {
    this.#append(broker);
    this.#later(LOOK_MS, () => this.#cluster.failDisk(broker, full, forMs));
    this.#later(LOOK_MS + forMs, () => this.#append(broker));
    this.#later(RESTART_MS, () => this.#cluster.kill(broker, { powerCut: false, downMs: COPY_TAKES_MS }));
  }

  #restore({ target, afterMs, powerCut, downMs }: Of<'restore'>): void {
    const cluster = this.#cluster;
    cluster.kill(target, { powerCut, downMs: COPY_TAKES_MS });
    const copy = cluster.disk(target).copy();
    this.#later(afterMs / 2, () => this.#append(target));
    this.#later(afterMs, () => this.#takeBack(target, downMs, () => cluster.disk(target).restore(copy)));
  }

  #clones({ target, turns, turnMs, downMs }: Of<'clones'>): void {
    const disk = this.#cluster.disk(target);
    this.#cluster.kill(target, { powerCut: false, downMs });
    let other = disk.copy();
    const swap = (): void => {
      const own = disk.copy();
      disk.restore(other);
      other = own;
    };
    for (let turn = 1; turn <= turns; turn++) {
      this.#later((turn - 0.5) * turnMs, () => this.#append(target));
      this.#later(turn * turnMs, () => this.#takeBack(target, downMs, swap));
    }
  }

  /**
   * A disk loses what it had, as soon as all that its broker holds in sync is in sync elsewhere too and every broker is
   * well. `change` comes between two processes.
   */
  #takeBack(
    broker: string,
    downMs: number,
    change: () => void,
    powerCut = true,
    untilMs = this.#cluster.world.nowMs + PATIENCE_MS,
  ): void {
    const cluster = this.#cluster;
    const { world } = cluster;
    if (this.sparesBrokers || world.nowMs > untilMs) return;
    if (!this.#host.brokersAreWell || !cluster.isSpare(broker)) {
      this.#later(LOOK_MS, () => this.#takeBack(broker, downMs, change, powerCut, untilMs));
      return;
    }
    cluster.kill(broker, { powerCut, downMs });
    change();
    cluster.copies.wiped(broker);
    this.#sparesUntilMs = world.nowMs + downMs + SPARE_MS;
  }

  #mute({ target, forMs, kill }: Of<'mute'>): void {
    const line = this.#cluster.line(target);
    this.#host.during(
      forMs,
      () => (line.swallowed = new Set(['report', 'confirm'])),
      () => {
        line.swallowed = new Set();
        if (kill) this.#cluster.kill(target, { powerCut: false, downMs: COPY_TAKES_MS });
      },
    );
  }

  /** Its last answers come so late that a lease counted from them outlives its time. */
  #lateAnswers({ target, delayMs, forMs }: Of<'lateAnswers'>): void {
    const { network, plan } = this.#cluster;
    const links = plan.members.map((id) => network.link(id, target));
    const { delayMinMs, delayMaxMs } = plan.settings;
    const steps = Math.ceil(delayMs / DELAY_STEP_MS);
    for (let step = 1; step <= steps; step++) {
      const later = Math.min(delayMs, step * DELAY_STEP_MS);
      this.#later(step * DELAY_EVERY_MS, () => {
        for (const link of links) Object.assign(link, { delayMinMs: later, delayMaxMs: later });
      });
    }
    const rampMs = (steps + 4) * DELAY_EVERY_MS;
    this.#later(rampMs, () => {
      this.#host.cut(
        plan.members.map((id): [string, string] => [target, id]),
        forMs,
      );
    });
    this.#later(rampMs + forMs, () => {
      for (const link of links) Object.assign(link, { delayMinMs, delayMaxMs });
    });
  }

  #othersReturn({ target, downMs }: Of<'otherBrokersReturn'>): void {
    const cluster = this.#cluster;
    const others = cluster.plan.brokers.filter((id) => id !== target);
    for (const id of others) cluster.kill(id, { powerCut: false, downMs });
    this.#later(downMs, () => {
      Object.assign(cluster.line(target), { answersToLose: 2, deafMs: LOOK_MS });
      this.#append(target);
    });
  }

  #stall(broker: string, forMs: number): void {
    const process = this.#cluster.process(broker);
    if (process === null) return;
    this.#host.during(
      forMs,
      () => process.stall(),
      () => process.resume(true),
    );
  }

  /** Its last heartbeat is answered as late as can be; what the quorum then writes it does not hear. */
  #heardLate({ target, silentMs, forMs }: Of<'heardLate'>): void {
    const cluster = this.#cluster;
    const { members } = cluster.plan;
    const line = cluster.line(target);
    const pairs = members.flatMap((id): [string, string][] => [
      [target, id],
      [id, target],
    ]);
    this.#host.cut(pairs, silentMs);
    this.#later(OVERLOAD_FROM_MS, () => {
      const disks = members.map((id) => cluster.disk(id).faults);
      const { syncMinMs } = HEALTHY_DISK;
      const { syncMaxMs } = cluster.plan.settings;
      this.#host.during(
        forMs,
        () => disks.forEach((faults) => Object.assign(faults, SLOW_QUORUM)),
        () => disks.forEach((faults) => Object.assign(faults, { syncMinMs, syncMaxMs })),
      );
    });
    this.#later(silentMs, () => {
      line.onAnswer = (type) => {
        if (type !== 'heartbeat.ok') return;
        line.onAnswer = null;
        this.#host.cut(pairs, forMs);
      };
    });
  }

  #overload({ target, silentMs }: Of<'overload'>): void {
    const { members, settings } = this.#cluster.plan;
    // A leader with room for thousands cannot be filled.
    if (settings.limits.maxPendingProposals > OVERLOAD_WRITES) return;
    this.#host.cut(
      members.map((id): [string, string] => [target, id]),
      silentMs,
    );
    for (let atMs = OVERLOAD_FROM_MS; atMs < silentMs + OVERLOAD_LONGER_MS; atMs += OVERLOAD_EVERY_MS) {
      this.#later(atMs, () => this.#host.burst(this.#cluster.resolve(ANY_LEADER), OVERLOAD_WRITES));
    }
  }

  #append(broker: string): void {
    this.#host.append(broker);
  }

  #later(ms: number, run: () => void): void {
    this.#cluster.world.schedule(ms, 'fault goes on', () => {
      if (!this.#host.isHealed) run();
    });
  }
}
