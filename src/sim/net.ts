import { EvenkeelError } from '../errors.ts';
import type { ConnectOptions, Connection, Listener, ListenOptions, Net } from '../net.ts';
import type { SimRandom } from './random.ts';
import { SimSocket } from './socket.ts';
import type { SimProcess, SimWorld } from './world.ts';

/** One direction between two hosts. Parts are probabilities a frame. */
export interface Link {
  /** Nothing passes; TCP holds back and repeats. */
  cut: boolean;
  delayMinMs: number;
  delayMaxMs: number;
  /** 0: unlimited. A low figure is a clog. */
  bytesPerMs: number;
  /** The connection breaks and what is under way is lost. */
  resetPart: number;
  /** The next three only on lossy paths, whose protocol promises to bear them. */
  lossPart: number;
  duplicatePart: number;
  reorderPart: number;
  /** What is overtaken or doubled comes up to so much later than the link's own delay, ms. */
  lateMs: number;
}

export const HEALTHY_LINK: Readonly<Link> = {
  cut: false,
  delayMinMs: 0.2,
  delayMaxMs: 2,
  bytesPerMs: 0,
  resetPart: 0,
  lossPart: 0,
  duplicatePart: 0,
  reorderPart: 0,
  lateMs: 0,
};

interface Binding {
  readonly process: SimProcess;
  readonly options: ListenOptions;
}

/** How long a kernel repeats unacknowledged data before it gives the connection up. */
const TCP_TIMEOUT_MS = 20_000;
/** Repeats come up to this far apart: when a machine is back, that is when the sender learns its connection is gone. */
const RETRANSMIT_MS = 1_000;
/** What takes no longer is not slow. */
const WELL_MS = 50;
const FIRST_EPHEMERAL_PORT = 40_000;

/**
 * Every cable of the virtual world. Hosts are named; an address is `host:port`. Frames of a lossy path
 * (past the first of a connection, which is a hello) may also be lost, doubled and overtaken one by one: that is
 * what the peers' transport allows itself, and more than TCP would do.
 */
export class SimNetwork {
  readonly world: SimWorld;
  readonly random: SimRandom;
  readonly tcpTimeoutMs = TCP_TIMEOUT_MS;
  readonly #links = new Map<string, Link>();
  readonly #bindings = new Map<string, Binding>();
  readonly #sockets = new Set<SimSocket>();
  readonly #downHosts = new Set<string>();
  /** `host path` of listeners that nobody reaches. */
  readonly #refused = new Set<string>();
  readonly #lossyPaths: ReadonlySet<string>;
  #nextPort = FIRST_EPHEMERAL_PORT;

  constructor(world: SimWorld, options: { lossyPaths: readonly string[] }) {
    this.world = world;
    this.random = world.random('network');
    this.#lossyPaths = new Set(options.lossyPaths);
  }

  /** The process's own view: what production code is given as its `Net`. */
  netOf(process: SimProcess): Net {
    return {
      connect: (address, options) => this.#connect(process, address, options),
      listen: (address, options) => this.#listen(process, address, options),
    };
  }

  /** From one host to another; change its fields, but cut and heal by `setCut`. */
  link(from: string, to: string): Link {
    const key = `${from}>${to}`;
    let link = this.#links.get(key);
    if (link === undefined) {
      link = { ...HEALTHY_LINK };
      this.#links.set(key, link);
    }
    return link;
  }

  setCut(from: string, to: string, cut: boolean): void {
    const link = this.link(from, to);
    if (link.cut === cut) return;
    link.cut = cut;
    if (cut) return;
    for (const socket of this.#between(from, to)) socket.healed();
  }

  /** Whether what is sent on that way arrives, and soon. */
  isWell(from: string, to: string): boolean {
    const { cut, delayMaxMs, bytesPerMs, lossPart, resetPart } = this.link(from, to);
    return !cut && delayMaxMs <= WELL_MS && bytesPerMs === 0 && lossPart === 0 && resetPart === 0;
  }

  /** Every connection between two hosts breaks. */
  breakConnections(a: string, b: string): void {
    for (const socket of this.#between(a, b)) socket.break();
  }

  /** Connections on which frames will still be under way at that time break: a link that is whole again has no queue. */
  breakHeldUp(untilMs: number): void {
    for (const socket of [...this.#sockets]) if (socket.busyUntilMs > untilMs) socket.break();
  }

  /** Nobody reaches a path of a host: its connections break, new ones are refused. */
  setRefused(host: string, path: string, refused: boolean): void {
    if (!refused) {
      this.#refused.delete(`${host} ${path}`);
      return;
    }
    this.#refused.add(`${host} ${path}`);
    for (const socket of [...this.#sockets]) {
      if (socket.process.host === host && socket.path === path) socket.break();
    }
  }

  isLossy(path: string): boolean {
    return this.#lossyPaths.has(path);
  }

  isUp(host: string): boolean {
    return !this.#downHosts.has(host);
  }

  /** Power off before the host's processes are killed, power on before new ones start. */
  setPower(host: string, on: boolean): void {
    if (on) this.#downHosts.delete(host);
    else this.#downHosts.add(host);
  }

  /** For sockets: data reached a machine without power. The sender's kernel repeats until it hears or gives up. */
  lostAtDeadHost(socket: SimSocket): void {
    const host = socket.peer.process.host;
    const givesUpMs = this.world.nowMs + this.tcpTimeoutMs;
    const repeat = (): void => {
      if (this.isUp(host)) this.reset(socket);
      else if (this.world.nowMs >= givesUpMs) socket.kernelClosed();
      else this.world.schedule(RETRANSMIT_MS, 'retransmit', repeat);
    };
    this.world.schedule(RETRANSMIT_MS, 'retransmit', repeat);
  }

  /** For sockets: the other kernel knows of no such connection and says so, if its answer gets through. */
  reset(socket: SimSocket): void {
    const back = this.link(socket.peer.process.host, socket.process.host);
    if (back.cut) return;
    this.world.schedule(this.random.between(back.delayMinMs, back.delayMaxMs), 'rst', () =>
      socket.kernelClosed(),
    );
  }

  forget(socket: SimSocket): void {
    this.#sockets.delete(socket);
  }

  /** Open ends, for bounds on memory. */
  get sockets(): ReadonlySet<SimSocket> {
    return this.#sockets;
  }

  #between(from: string, to: string): SimSocket[] {
    return [...this.#sockets].filter((s) => s.process.host === from && s.peer.process.host === to);
  }

  #listen(process: SimProcess, address: string, options: ListenOptions): Promise<Listener> {
    const bound = address.endsWith(':0') ? `${address.slice(0, -1)}${this.#nextPort++}` : address;
    if (this.#bindings.get(bound)?.process.alive === true) {
      return Promise.reject(new EvenkeelError('address_in_use', `${bound} is in use`));
    }
    this.#bindings.set(bound, { process, options });
    return Promise.resolve({
      address: bound,
      close: () => {
        if (this.#bindings.get(bound)?.process === process) this.#bindings.delete(bound);
        return Promise.resolve();
      },
    });
  }

  #connect(process: SimProcess, address: string, options: ConnectOptions): Promise<Connection> {
    return new Promise((resolve, reject) => {
      if (!process.alive) return;
      const host = address.slice(0, address.lastIndexOf(':'));
      const attempt: Attempt = { process, host, address, options, settled: false, resolve, reject };
      const timer = process.clock.setTimeout(
        () => refuse(attempt, `${address} did not answer within ${options.timeoutMs} ms`),
        options.timeoutMs,
      );
      attempt.timer = timer;
      const there = this.link(process.host, host);
      if (there.cut) return;
      this.world.schedule(this.random.between(there.delayMinMs, there.delayMaxMs), 'syn', () =>
        this.#accept(attempt),
      );
    });
  }

  /** In the called host's kernel. */
  #accept(attempt: Attempt): void {
    const { host, address, process } = attempt;
    if (!this.isUp(host)) return;
    const binding = this.#bindings.get(address);
    const isRefused = this.#refused.has(`${host} ${attempt.options.path}`);
    if (binding === undefined || !binding.process.alive || isRefused) {
      this.#answer(attempt, () => refuse(attempt, `${address} refused the connection`));
      return;
    }
    binding.process.deliver(() => {
      const { path, subprotocol = '' } = attempt.options;
      const route = binding.options.routes[path];
      if (route === undefined) {
        this.#answer(attempt, () => refuse(attempt, `${address} answered 404 for ${path}`));
        return;
      }
      if (route.subprotocols.length > 0 && !route.subprotocols.includes(subprotocol)) {
        this.#answer(attempt, () => refuse(attempt, `${address} answered 400: subprotocol ${subprotocol}`));
        return;
      }
      const remoteAddress = `${process.host}:${this.#nextPort++}`;
      const far = new SimSocket(this, binding.process, {
        path,
        subprotocol,
        remoteAddress,
        maxPayloadBytes: route.maxPayloadBytes,
      });
      const near = new SimSocket(this, process, {
        path,
        subprotocol,
        remoteAddress: address,
        maxPayloadBytes: attempt.options.maxPayloadBytes,
      });
      near.peer = far;
      far.peer = near;
      this.#sockets.add(far);
      this.#sockets.add(near);
      far.accept(() => settle(attempt, near));
      route.onConnection(far);
    });
  }

  /** A refusal on its way back. */
  #answer(attempt: Attempt, run: () => void): void {
    const back = this.link(attempt.host, attempt.process.host);
    if (back.cut) return;
    const delayMs = this.random.between(back.delayMinMs, back.delayMaxMs);
    this.world.schedule(delayMs, 'refusal', () => attempt.process.deliver(run));
  }
}

interface Attempt {
  readonly process: SimProcess;
  readonly host: string;
  readonly address: string;
  readonly options: ConnectOptions;
  settled: boolean;
  timer?: object;
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: Error) => void;
}

function refuse(attempt: Attempt, message: string): void {
  if (attempt.settled) return;
  attempt.settled = true;
  if (attempt.timer !== undefined) attempt.process.clock.clearTimeout(attempt.timer);
  attempt.reject(new EvenkeelError('unreachable', message));
}

/** The upgrade's answer is here. A caller that has given up closes what it no longer wants. */
function settle(attempt: Attempt, connection: SimSocket): void {
  if (attempt.settled) {
    connection.terminate();
    return;
  }
  attempt.settled = true;
  if (attempt.timer !== undefined) attempt.process.clock.clearTimeout(attempt.timer);
  attempt.resolve(connection);
}
