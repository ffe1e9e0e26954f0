// Ways to write destinations that no call may reach.

/** Hosts as they can stand in a URL, whose address is not a public one. */
export const forbiddenHosts: readonly string[] = [
  // This machine, in every spelling that a URL parser reads.
  ...["127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "2130706433", "0x7f000001", "0x7f.1", "0X7F.0.0.1"],
  ...["0177.0.0.1", "0177.1", "017700000001", "127.0.0.1.", "%31%32%37.0.0.1", "１２７.０.０.１", "127。0。0。1"],
  ...["①②⑦.⓪.⓪.①", "0x7F.0x0.0x0.0x1", "0", "0.0.0.0", "0.1.2.3", "0x0", "00.0.0.0"],
  // Private networks.
  ...["10.0.0.1", "10.255.255.255", "012.0.0.1", "0xa000001", "167772161", "172.16.0.1", "172.31.255.255"],
  ...["192.168.0.1", "192.168.1", "0xc0a80001", "3232235521", "0300.0250.0.1", "100.64.0.1", "100.127.255.255"],
  // Link-local, and the clouds' metadata services.
  ...["169.254.169.254", "169.254.0.1", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "169.254.43518"],
  ...["169.254.170.2", "100.100.100.200", "168.63.129.16", "0xa83f8110", "192.0.0.192"],
  // Others that no server of the outside has.
  ...["192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1"],
  ...["224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "192.31.196.1", "192.52.193.1", "192.175.48.1"],
  // IPv6 itself.
  ...["[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "[0000::0001]", "[fe80::1]", "[febf::1]", "[fec0::1]", "[fc00::1]"],
  ...["[fd00:ec2::254]", "[fd20:ce::254]", "[ff02::1]", "[2001:db8::1]", "[3fff::1]", "[100::1]", "[5f00::1]"],
  ...["[2001::1]", "[2001:2::1]", "[2001:10::1]", "[2001:20::1]", "[2620:4f:8000::1]"],
  // IPv4 hidden in IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP.
  ...["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::FFFF:10.0.0.1]"],
  ...["[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::ffff:0:127.0.0.1]", "[::127.0.0.1]", "[::7f00:1]"],
  ...["[::10.0.0.1]", "[::ffff:168.63.129.16]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]"],
  ...["[64:ff9b::169.254.169.254]", "[64:ff9b:1::127.0.0.1]", "[64:ff9b:1::808:808]", "[2002:7f00:1::]"],
  ...["[2002:a00:1::1]", "[2002:a9fe:a9fe::]", "[2002:808:808::1]", "[2001:0:7f00:1::]", "[2a00::5efe:127.0.0.1]"],
  ...["[2a00::200:5efe:10.0.0.1]"],
];

/** Answers of a resolver that spoil a name. */
export const forbiddenAnswers: readonly string[] = [
  ...["127.0.0.1", "127.53.53.53", "0.0.0.0", "10.1.2.3", "172.20.0.1", "192.168.178.1", "169.254.169.254"],
  ...["100.64.0.1", "100.100.100.200", "168.63.129.16", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::1", "::"],
  ...["fe80::1", "fe80::1%eth0", "fe80::1%25lo", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:7f00:1"],
  ...["::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:7f00::1", "0x7f000001", "0177.0.0.1"],
  ...["2130706433", "127.1", "", "localhost", "not an address"],
];

/** What is no URL for a call at all. */
export const forbiddenUrls: readonly string[] = [
  ...[
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com:70/",
    "javascript:alert(1)",
    "data:text/plain,x",
  ],
  ...["ws://example.com/", "unix:/var/run/docker.sock", "http+unix://%2Fvar%2Frun/x", "about:blank", "blob:null/x"],
  ...[
    "//example.com/",
    "example.com",
    "/path",
    "",
    " ",
    "http://",
    "http:///path",
    "https://?",
    "http://[",
    "http://[::1",
  ],
  ...["http://user@example.com/", "http://user:pw@example.com/", "http://:pw@example.com/", "http://a b.example/"],
  ...["http://exa\nmple.com/", "http://example.com/\r\nx: y", "http://example.com/\tx", "http://example.com:0/"],
  ...["http://example.com:65536/", "http://example.com:-1/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/"],
  ...["http://256.256.256.256/", "http://1.2.3.4.5/", "http://0x100000000/", "http://exa%00mple.com/"],
  ...["http:/\\example.com/", "http:example.com/", "http:\\\\example.com\\x", "http://good.example\\@evil.example/"],
];
