// Preloaded into a broker (NODE_OPTIONS=--import): what it dials at a port of TEST_LINKS goes to the proxy of that link.
import { Socket } from 'node:net';

const proxies = new Map(Object.entries(JSON.parse(process.env.TEST_LINKS ?? '{}')));
const connect = Socket.prototype.connect;

Socket.prototype.connect = function (...args) {
  const [first] = args;
  const options = Array.isArray(first) ? first[0] : first;
  const proxy = typeof options === 'object' && options !== null && proxies.get(String(options.port));
  if (proxy) options.port = proxy;
  return connect.apply(this, args);
};
