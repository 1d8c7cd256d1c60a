import { decode, encode } from './frames.ts';
import {
  BROKER_PATH,
  JSON_SUBPROTOCOL,
  MAX_BROKER_PUSH_BYTES,
  MSGPACK_SUBPROTOCOL,
} from '../../src/broker-protocol.ts';
import type { Connection } from '../../src/net.ts';
import type { BrokerWorld } from './broker-world.ts';

export type Frame = Readonly<Record<string, unknown>>;

/** One connection to a node's `/broker` that sends exactly what the test says and keeps all that comes. */
export class RawBroker {
  readonly pushes: Frame[] = [];
  closed: { code: number; reason: string } | null = null;
  readonly #world: BrokerWorld;
  readonly #connection: Connection;
  readonly #answers = new Map<number, Frame>();
  #lastId = 0;

  private constructor(world: BrokerWorld, connection: Connection) {
    this.#world = world;
    this.#connection = connection;
    connection.onMessage = (frame) => {
      const message = decode(frame);
      if (typeof message['id'] === 'number') this.#answers.set(message['id'], message);
      else this.pushes.push(message);
    };
    connection.onClose = (code, reason) => {
      this.closed = { code, reason };
    };
  }

  static async open(
    world: BrokerWorld,
    node: string,
    encoding: 'json' | 'msgpack' = 'json',
  ): Promise<RawBroker> {
    const net = world.network.netOf(world.process('raw'));
    const connection = await world.settled(
      net.connect(`${node}:1`, {
        path: BROKER_PATH,
        subprotocol: encoding === 'json' ? JSON_SUBPROTOCOL : MSGPACK_SUBPROTOCOL,
        maxPayloadBytes: MAX_BROKER_PUSH_BYTES,
        timeoutMs: 1_000,
      }),
    );
    return new RawBroker(world, connection);
  }

  sendFrame(frame: string | Uint8Array): void {
    this.#connection.send(frame);
  }

  /** Sends a request without waiting; answers its id. */
  send(type: string, fields: object = {}): number {
    const id = ++this.#lastId;
    this.#connection.send(
      encode({ id, type, ...fields }, this.#connection.subprotocol === MSGPACK_SUBPROTOCOL),
    );
    return id;
  }

  async answer(id: number, withinMs = 20_000): Promise<Frame> {
    await this.#world.until(`request ${id} is answered`, () => this.#answers.has(id), withinMs);
    return this.#answers.get(id) ?? {};
  }

  request(type: string, fields: object = {}): Promise<Frame> {
    return this.answer(this.send(type, fields));
  }

  async register(id: string, fields: object = {}, incarnation?: number): Promise<Frame> {
    return this.request('register', {
      clusterId: 'test',
      broker: { id, addresses: { data: `${id}:1` }, storeId: `store-${id}`, ...fields },
      ...(incarnation === undefined ? {} : { incarnation }),
    });
  }
}
