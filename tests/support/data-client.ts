import { DATA_PATH, DATA_SUBPROTOCOL, MAX_DATA_FRAME_BYTES } from '../../src/broker/index.ts';
import type { Connection } from '../../src/net.ts';
import type { BrokerWorld } from './broker-world.ts';

type Answer = Readonly<Record<string, unknown>>;

/** A client of one reference broker, in the virtual world. */
export class DataClient {
  readonly #connection: Promise<Connection>;
  readonly #pending = new Map<number, (answer: Answer) => void>();
  #lastId = 0;

  constructor(world: BrokerWorld, address: string) {
    const net = world.network.netOf(world.process('client'));
    this.#connection = net
      .connect(address, {
        path: DATA_PATH,
        subprotocol: DATA_SUBPROTOCOL,
        maxPayloadBytes: MAX_DATA_FRAME_BYTES,
        timeoutMs: 1_000,
      })
      .then((connection) => {
        connection.onMessage = (frame) => {
          const answer = JSON.parse(String(frame)) as Answer & { id: number };
          this.#pending.get(answer.id)?.(answer);
          this.#pending.delete(answer.id);
        };
        return connection;
      });
  }

  async request(type: string, fields: object): Promise<Answer> {
    const connection = await this.#connection;
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      this.#pending.set(id, resolve);
      connection.send(JSON.stringify({ id, type, ...fields }));
    });
  }
}
