import { BROKER_PATH, brokerCodec, MSGPACK_SUBPROTOCOL } from '../broker-protocol.ts';
import { DATA_PATH } from '../broker/index.ts';
import type { Connection, Net, Route } from '../net.ts';
import type { SimProcess } from './world.ts';

const codec = brokerCodec(MSGPACK_SUBPROTOCOL);

/** What a fault makes of a broker's talk with the control plane. It outlives the broker's processes. */
export interface BrokerLine {
  /** Requests of these types are never sent: of a broker that beats and does nothing else. */
  swallowed: ReadonlySet<string>;
  /** The answers to so many more reports are lost, with all that the node says after them, until the connection breaks. */
  answersToLose: number;
  /** For how long after such a report the connection is deaf, ms. */
  deafMs: number;
  /** Told of every answer that comes in. */
  onAnswer: ((type: string) => void) | null;
}

export function quietLine(): BrokerLine {
  return { swallowed: new Set(), answersToLose: 0, deafMs: 0, onAnswer: null };
}

/** Told of an answer to a client that says a request was carried out, at the moment at which it leaves. */
export type OnServed = (type: 'append' | 'read', shard: string) => void;

/** A broker's net: its line to the control plane under faults, and its answers to clients watched. */
export function brokerNet(net: Net, process: SimProcess, line: BrokerLine, onServed: OnServed): Net {
  return {
    async connect(address, options) {
      const connection = await net.connect(address, options);
      return options.path === BROKER_PATH ? onLine(connection, process, line) : connection;
    },
    listen(address, options) {
      const data = options.routes[DATA_PATH];
      if (data === undefined) return net.listen(address, options);
      return net.listen(address, {
        ...options,
        routes: { ...options.routes, [DATA_PATH]: watched(data, onServed) },
      });
    },
  };
}

function onLine(connection: Connection, process: SimProcess, line: BrokerLine): Connection {
  let isDeaf = false;
  const wrapped: Connection = {
    subprotocol: connection.subprotocol,
    remoteAddress: connection.remoteAddress,
    get bufferedBytes() {
      return connection.bufferedBytes;
    },
    send(data) {
      if (line.swallowed.size > 0 || line.answersToLose > 0) {
        const { type } = codec.decode(data) as { readonly type: string };
        if (line.swallowed.has(type)) return;
        if (type === 'report' && line.answersToLose > 0 && !isDeaf) {
          line.answersToLose--;
          isDeaf = true;
          process.clock.setTimeout(() => connection.terminate(), line.deafMs);
        }
      }
      connection.send(data);
    },
    close: (code, reason) => connection.close(code, reason),
    terminate: () => connection.terminate(),
    onMessage: () => {},
    onClose: () => {},
  };
  connection.onMessage = (data) => {
    if (isDeaf) return;
    wrapped.onMessage(data);
    line.onAnswer?.((codec.decode(data) as { readonly type: string }).type);
  };
  connection.onClose = (code, reason) => wrapped.onClose(code, reason);
  return wrapped;
}

function watched(route: Route, onServed: OnServed): Route {
  return {
    ...route,
    onConnection(connection) {
      /** By the request's number. */
      const shards = new Map<number, string>();
      const wrapped: Connection = {
        subprotocol: connection.subprotocol,
        remoteAddress: connection.remoteAddress,
        get bufferedBytes() {
          return connection.bufferedBytes;
        },
        send(data) {
          const { id, type } = JSON.parse(String(data)) as { readonly id: number; readonly type: string };
          if (type === 'append.ok') onServed('append', shards.get(id) ?? '');
          else if (type === 'read.ok') onServed('read', shards.get(id) ?? '');
          connection.send(data);
        },
        close: (code, reason) => connection.close(code, reason),
        terminate: () => connection.terminate(),
        onMessage: () => {},
        onClose: () => {},
      };
      connection.onMessage = (data) => {
        const { id, shard } = JSON.parse(String(data)) as { readonly id: number; readonly shard: string };
        shards.set(id, shard);
        wrapped.onMessage(data);
      };
      connection.onClose = (code, reason) => wrapped.onClose(code, reason);
      route.onConnection(wrapped);
    },
  };
}
