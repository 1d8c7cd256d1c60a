import type { Clock, MemberId, Message, Random, Transport, TransportHandler } from '../../raft/index.ts';
import { EvenkeelError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { Listener, Net } from '../net.ts';
import { PeerAcceptor } from './peer-acceptor.ts';
import type { PeerIdentity, RequestFrame } from './peer-codec.ts';
import { PeerLink } from './peer-link.ts';

export interface PeerTransportOptions {
  readonly net: Net;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly self: PeerIdentity;
  /** Where peers are awaited, `host:port`. */
  readonly listen: string;
  /** Address by member id. This member's own is passed over. */
  readonly peers: ReadonlyMap<MemberId, string>;
}

/** Runs one method for a peer. What it rejects with crosses the wire as code, message and data. */
export type PeerService = (params: Uint8Array, context: PeerCallContext) => Promise<Uint8Array>;

interface PeerCallContext {
  readonly from: MemberId;
  /** How much longer the caller waits. */
  readonly deadlineMs: number;
}

/**
 * Raft's messages and the nodes' calls between peers. Each member dials every other and says what it has to
 * say over the sockets it dialed; the others' sockets are only listened to and answered on. Contract:
 * `Transport`.
 */
export class PeerTransport implements Transport {
  readonly #options: PeerTransportOptions;
  readonly #links = new Map<MemberId, PeerLink>();
  readonly #services = new Map<string, PeerService>();
  readonly #acceptor: PeerAcceptor;
  #addresses: ReadonlyMap<MemberId, string>;
  #directories: ReadonlyMap<MemberId, string> = new Map();
  #handler: TransportHandler | null = null;
  #listener: Listener | null = null;
  #starting: Promise<void> | null = null;
  #stopped = false;

  constructor(options: PeerTransportOptions) {
    this.#options = options;
    this.#addresses = options.peers;
    const { clock, logger, self } = options;
    this.#acceptor = new PeerAcceptor({
      clock,
      logger,
      self,
      admit: (identity) => this.#admit(identity) ?? this.#admitBeside(identity),
      onHello: (identity) => this.#links.get(identity.memberId)?.heard(identity),
      onMessages: (messages) => this.#handler?.onMessages(messages),
      run: (from, frame) => this.#run(from, frame),
    });
  }

  /** May come after `start`, for calls are of use before Raft runs: peers connected by then are told of next. */
  bind(handler: TransportHandler): void {
    if (this.#handler !== null) throw new Error('the peer transport is bound already');
    this.#handler = handler;
    const connected = [...this.#links].filter(([, link]) => link.isReported);
    this.#options.clock.defer(() => {
      for (const [peer, { isReported, identity }] of connected) {
        if (isReported && identity !== null) handler.onPeerUp(peer, identity.bootId);
      }
    });
  }

  /** Listens and dials. Rejects with `address_in_use`. A second call waits for the first. */
  start(): Promise<void> {
    this.#starting ??= this.#listen();
    return this.#starting;
  }

  send(messages: readonly Message[]): void {
    const byPeer = new Map<MemberId, Message[]>();
    for (const message of messages) {
      const gathered = byPeer.get(message.to);
      if (gathered === undefined) byPeer.set(message.to, [message]);
      else gathered.push(message);
    }
    for (const [peer, gathered] of byPeer) this.#links.get(peer)?.send(gathered);
  }

  isConnected(peer: MemberId): boolean {
    return this.#links.get(peer)?.isOpen ?? false;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const link of this.#links.values()) link.stop();
    await this.#starting?.catch(() => {});
    await this.#listener?.close();
    this.#listener = null;
  }

  /** Where peers are awaited, the port as bound. Once started. */
  get address(): string {
    if (this.#listener === null) throw new Error('the peer transport is not started');
    return this.#listener.address;
  }

  /** Who answered at the peer's address last; `null` before the first time. */
  identityOf(peer: MemberId): PeerIdentity | null {
    return this.#links.get(peer)?.identity ?? null;
  }

  /** Bytes that wait for the peer to read them. */
  bufferedBytes(peer: MemberId): number {
    return this.#links.get(peer)?.bufferedBytes ?? 0;
  }

  /** The members have changed: dials new ones and those that moved, drops those that are gone. */
  setPeers(peers: ReadonlyMap<MemberId, string>): void {
    const before = this.#addresses;
    this.#addresses = peers;
    if (this.#listener === null || this.#stopped) return;
    for (const [peer, link] of this.#links) {
      if (peers.get(peer) === before.get(peer)) continue;
      link.stop();
      this.#links.delete(peer);
      if (!peers.has(peer)) this.#acceptor.forget(peer);
    }
    this.#dialMissing();
  }

  /** From here on a member is let in with this data directory only: what another acknowledged is not in it. */
  setDirectories(directories: ReadonlyMap<MemberId, string>): void {
    this.#directories = directories;
    for (const [peer, link] of this.#links) {
      const due = directories.get(peer);
      if (due === undefined || link.identity === null || link.identity.directoryId === due) continue;
      this.#acceptor.forget(peer);
      link.redial();
    }
  }

  /** Registers what peers may call here. */
  serve(method: string, service: PeerService): void {
    if (this.#services.has(method)) throw new Error(`${method} is served already`);
    this.#services.set(method, service);
  }

  /**
   * Runs a method at a peer; `deadlineMs` from now. Rejects with what the service rejected with, or:
   * `unavailable` and `overloaded` (never sent), `limit_exceeded`, `unknown_method`, `deadline_exceeded` and
   * `outcome_unknown` (it may have run).
   */
  call(peer: MemberId, method: string, params: Uint8Array, deadlineMs: number): Promise<Uint8Array> {
    const link = this.#links.get(peer);
    if (link === undefined)
      return Promise.reject(new EvenkeelError('unavailable', `${peer} is no peer of this node`));
    return link.call(method, params, deadlineMs);
  }

  async #listen(): Promise<void> {
    const { net, listen } = this.#options;
    this.#listener = await net.listen(listen, { routes: this.#acceptor.routes() });
    if (!this.#stopped) this.#dialMissing();
  }

  #dialMissing(): void {
    const { self, net, clock, random, logger } = this.#options;
    for (const [peer, address] of this.#addresses) {
      if (peer === self.memberId || this.#links.has(peer)) continue;
      const link = new PeerLink({
        net,
        clock,
        random,
        logger,
        self,
        peer,
        address,
        admit: (identity) => this.#admit(identity, peer),
        onUp: (identity) => this.#handler?.onPeerUp(peer, identity.bootId),
        onDown: () => this.#handler?.onPeerDown(peer),
      });
      this.#links.set(peer, link);
      link.start();
    }
  }

  #admit(identity: PeerIdentity, expected?: MemberId): EvenkeelError | null {
    const { self } = this.#options;
    const { clusterId, memberId } = identity;
    if (clusterId !== self.clusterId) {
      return new EvenkeelError(
        'wrong_cluster',
        `${memberId} is of cluster ${clusterId}, this node of ${self.clusterId}`,
      );
    }
    if (expected !== undefined && memberId !== expected) {
      return new EvenkeelError(
        'refused',
        `${memberId} answers where ${expected} should: check the addresses in --members`,
      );
    }
    if (memberId === self.memberId) {
      return new EvenkeelError('refused', `another node runs as ${memberId}: give each its own --node-id`);
    }
    if (!this.#addresses.has(memberId)) {
      return new EvenkeelError('refused', `${memberId} is no member this node knows of`);
    }
    const directoryId = this.#directories.get(memberId) ?? identity.directoryId;
    if (directoryId !== identity.directoryId) {
      return new EvenkeelError(
        'wrong_directory',
        `${memberId} is known by data directory ${directoryId} and comes with ${identity.directoryId}: give it its own back`,
      );
    }
    return null;
  }

  /** While a member is connected, another node that goes by its name must not take its place. */
  #admitBeside(identity: PeerIdentity): EvenkeelError | null {
    const link = this.#links.get(identity.memberId);
    if (link?.isOpen !== true || link.identity?.directoryId === identity.directoryId) return null;
    return new EvenkeelError(
      'refused',
      `${identity.memberId} is connected with another data directory: give each node its own --node-id`,
    );
  }

  #run(from: MemberId, frame: RequestFrame): Promise<Uint8Array> {
    const service = this.#services.get(frame.method);
    if (service === undefined) {
      return Promise.reject(
        new EvenkeelError('unknown_method', `this node serves no ${frame.method} to peers`),
      );
    }
    return service(frame.params, { from, deadlineMs: frame.deadlineMs });
  }
}
