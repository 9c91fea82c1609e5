"""python3 -m unittest"""

import unittest

from plugin import decide


class Decide(unittest.TestCase):
    def test_all(self):
        want = {"name": "first", "text": "ahoy"}
        for destroy, now, action in [
            (False, None, "create"),
            (False, want, ""),
            (False, {"name": "first", "text": "aloha"}, "update"),
            (False, {"name": "second", "text": "ahoy"}, "replace"),
            (False, {}, "replace"),
            (True, want, "delete"),
            (True, None, ""),
        ]:
            with self.subTest(destroy=destroy, now=now):
                self.assertEqual(decide(destroy, now, want), action)


if __name__ == "__main__":
    unittest.main()
