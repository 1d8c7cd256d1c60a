import { WebSocket } from 'ws';
import { DATA_PATH, DATA_SUBPROTOCOL } from '../../src/broker/index.ts';

export type Answer = Readonly<Record<string, unknown>>;

/** A client's connection to one broker. An answer is taken whenever it comes, also long after its asker gave up. */
export class DataLink {
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, { take: (answer: Answer) => void; lost: () => void }>();
  #lastId = 0;

  constructor(address: string) {
    this.#socket = new WebSocket(`ws://${address}${DATA_PATH}`, DATA_SUBPROTOCOL, {
      perMessageDeflate: false,
      handshakeTimeout: 2_000,
    });
    this.#socket.on('message', (data: Buffer) => {
      const answer = JSON.parse(data.toString('utf8')) as Answer & { readonly id: number };
      const asked = this.#pending.get(answer.id);
      this.#pending.delete(answer.id);
      asked?.take(answer);
    });
    this.#socket.on('error', () => this.#socket.terminate());
    this.#socket.on('close', () => {
      for (const { lost } of this.#pending.values()) lost();
      this.#pending.clear();
    });
  }

  get isOver(): boolean {
    return this.#socket.readyState >= WebSocket.CLOSING;
  }

  close(): void {
    this.#socket.terminate();
  }

  /** @param lost called instead of `take` when the connection ends without an answer */
  ask(request: object, take: (answer: Answer) => void, lost: () => void): void {
    const frame = JSON.stringify({ id: ++this.#lastId, ...request });
    this.#pending.set(this.#lastId, { take, lost });
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(frame);
    else this.#socket.once('open', () => this.#socket.send(frame));
  }
}
