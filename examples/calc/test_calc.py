import unittest

import calc


class CalcTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(calc.add(2, 3), 5)

    def test_double(self):
        self.assertEqual(calc.double(4), 8)


if __name__ == "__main__":
    unittest.main()
